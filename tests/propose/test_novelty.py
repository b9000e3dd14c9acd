"""An idea that was had before is known again, also when a digit nobody would see is different."""

from collections.abc import Mapping

import pytest

from overnight.propose.novelty import is_duplicate
from overnight.records.limits import Scalar
from overnight.records.proposal import Ending, Proposal, Tried
from overnight.records.space import Parameter, Space

SPACE = Space(
    trainer="toy",
    source="Made up for this test.",
    parameters=(
        Parameter(name="rate", type="float", default=0.001, says="A rate.", low=1e-5, high=0.1, log=True),
        Parameter(name="discount", type="float", default=0.99, says="A discount.", low=0.8, high=0.9999),
        Parameter(name="envs", type="int", default=8, says="A count.", low=1, high=4096, log=True),
        Parameter(name="anneal", type="bool", default=True, says="A switch."),
    ),
)
BASE: dict[str, Scalar] = {"rate": 0.001, "discount": 0.99, "envs": 8, "anneal": True}


def tried(params: Mapping[str, Scalar], *, outcome: Ending = "rejected", changed: str = "rate") -> Tried:
    proposal = Proposal(
        proposer="search",
        kind="hyperparameter",
        hypothesis="It may help.",
        predicted_effect="It scores higher.",
        params={changed: params[changed]} if changed else {},
    )
    return Tried(candidate="c-0007", proposal=proposal, params=params, outcome=outcome)


def test_the_same_parameters_are_named_with_what_became_of_them() -> None:
    assert is_duplicate(BASE, (tried(BASE),), SPACE) == (
        "The same parameters were tried as c-0007, which was rejected."
    )
    assert is_duplicate(BASE, (tried(BASE, outcome="pending"),), SPACE) == (
        "The same parameters were tried as c-0007, which is not decided yet."
    )


def test_nearly_the_same_parameters_are_named_with_the_difference() -> None:
    assert is_duplicate({**BASE, "rate": 0.0010004}, (tried(BASE),), SPACE) == (
        "Nearly the same parameters were tried as c-0007, which was rejected: "
        "rate 0.0010004 and 0.001 do not differ in the first 3 digits."
    )


@pytest.mark.parametrize(
    ("key", "one", "other", "same"),
    [
        pytest.param("rate", 0.00012344, 0.00012341, True, id="a fourth digit on a logarithmic scale"),
        pytest.param("rate", 0.000124, 0.000123, False, id="a third digit on a logarithmic scale"),
        pytest.param("rate", 0.00001, 0.00002, False, id="small, and twice as large"),
        pytest.param("discount", 0.999, 0.9995, False, id="close to one, and twice the horizon"),
        pytest.param("discount", 0.98001, 0.98, True, id="less than a thousandth of the range"),
        pytest.param("envs", 8, 9, False, id="small counts"),
        pytest.param("envs", 2048, 2049, True, id="large counts"),
        pytest.param("anneal", True, False, False, id="a switch"),
    ],
)
def test_what_counts_as_the_same_depends_on_the_scale(key: str, one: Scalar, other: Scalar, same: bool) -> None:
    found = is_duplicate({**BASE, key: one}, (tried({**BASE, key: other}),), SPACE)
    assert (found is not None) is same


def test_without_a_space_three_digits_count() -> None:
    assert is_duplicate({"x": 1.0001}, (tried({"x": 1.0}, changed="x"),), None) is not None
    assert is_duplicate({"x": 1.01}, (tried({"x": 1.0}, changed="x"),), None) is None


def test_one_and_true_are_different_and_one_and_one_point_nought_are_not() -> None:
    earlier = (tried({"x": 1}, changed="x"),)
    assert is_duplicate({"x": True}, earlier, None) is None
    assert is_duplicate({"x": "1"}, earlier, None) is None
    assert is_duplicate({"x": 1.0}, earlier, None) is not None


def test_ideas_in_code_are_passed_over() -> None:
    assert is_duplicate(BASE, (tried(BASE, changed=""),), SPACE) is None


def test_something_new_is_new() -> None:
    assert is_duplicate(BASE, (), SPACE) is None
    assert is_duplicate({**BASE, "envs": 16}, (tried(BASE),), SPACE) is None
    assert is_duplicate({"rate": 0.001}, (tried(BASE),), SPACE) is None
