"""Which names may stand in a tree; `tests/fuzz` compares the same function with a model of its own."""

import pytest

from overnight.records.paths import MAX_PATH_BYTES, why_unsafe


@pytest.mark.parametrize(
    "path",
    [
        "params.json",
        "src/train.py",
        ".gitignore",
        ".github/workflows/ci.yml",
        "docs/über uns.md",
        "日本/語.py",
        "a-b_c+d@e~f.txt",
        "..a/b..c/...d",
        "-rf",
        "console.py",
        "auxiliary/nullable.c",
        "git",
        "x" * 200,
    ],
)
def test_a_plain_name_is_safe(path: str) -> None:
    assert why_unsafe(path) is None


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        pytest.param("", "does not lie inside the tree", id="empty"),
        pytest.param("/etc/passwd", "does not lie inside the tree", id="absolute"),
        pytest.param("a/../../x", "leaves its folder", id="climbs out"),
        pytest.param("..", "leaves its folder", id="parent"),
        pytest.param("./a", "leaves its folder", id="here"),
        pytest.param("a//b", "leaves its folder", id="an empty part"),
        pytest.param("a/", "leaves its folder", id="ends in a slash"),
        pytest.param(".git/hooks/post-checkout", "is one that git keeps for itself", id="a hook"),
        pytest.param("sub/.GIT/config", "is one that git keeps for itself", id="in capitals"),
        pytest.param("git~1/config", "is one that git keeps for itself", id="by its short name"),
        pytest.param(".git /config", "begins or ends with a space", id="with a space behind"),
        pytest.param(".git./config", "begins or ends with a space, or ends with a dot", id="with a dot behind"),
        pytest.param(".g\u200cit/config", "holds a character that cannot be seen", id="with a joiner inside"),
        pytest.param("a\nb", "holds a character that cannot be seen", id="a newline"),
        pytest.param("a\x00b", "holds a character that cannot be seen", id="a NUL"),
        pytest.param("a\x1b[31mb", "holds a character that cannot be seen", id="a terminal's escape"),
        pytest.param("a\u202eb", "holds a character that cannot be seen", id="writes from right to left"),
        pytest.param("a\udc80b", "holds a character that cannot be seen", id="not text"),
        pytest.param("a\ufeffb", "holds a character that cannot be seen", id="a byte-order mark"),
        pytest.param("e\u0301.py", "is not in Unicode's composed form", id="decomposed"),
        pytest.param("a\\b", "holds a backslash or a colon", id="a backslash"),
        pytest.param("C:/x", "holds a backslash or a colon", id="a drive"),
        pytest.param("a.py:stream", "holds a backslash or a colon", id="a stream"),
        pytest.param("con", "is one that some systems keep for themselves", id="a device"),
        pytest.param("src/AUX.py", "is one that some systems keep for themselves", id="a device with an ending"),
        pytest.param("lpt1.tar.gz", "is one that some systems keep for themselves", id="a port"),
        pytest.param(" a", "begins or ends with a space", id="a space in front"),
        pytest.param("a\u00a0/b", "begins or ends with a space", id="a hard space behind"),
        pytest.param("a/b.", "begins or ends with a space, or ends with a dot", id="a dot at the end"),
    ],
)
def test_a_name_that_means_something_else_somewhere_is_unsafe(path: str, wrong: str) -> None:
    says = why_unsafe(path)
    assert says is not None
    assert says.startswith(wrong)


def test_the_length_is_counted_in_bytes() -> None:
    parts = "é" * 100
    path = "/".join([parts] * 5)
    assert len(path) < MAX_PATH_BYTES < len((path + "/" + parts).encode())
    assert why_unsafe(path) is None
    assert why_unsafe(path + "/" + parts) == "is longer than 1024 bytes"
