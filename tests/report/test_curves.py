"""Seeds that logged at different places are brought onto one grid, and nothing is invented beyond their ends."""

from overnight.report.curves import BandPoint, band, value_at


def test_a_band_is_the_median_between_the_lowest_and_the_highest_seed() -> None:
    seeds = (((0.0, 0.0), (10.0, 10.0)), ((0.0, 2.0), (10.0, 30.0)), ((0.0, 4.0), (10.0, 20.0)))
    assert band(seeds) == (BandPoint(0.0, 0.0, 2.0, 4.0, 3), BandPoint(10.0, 10.0, 20.0, 30.0, 3))


def test_between_two_points_a_seed_is_a_straight_line() -> None:
    assert value_at(((0.0, 0.0), (10.0, 100.0)), 2.5) == 25.0
    assert value_at(((0.0, 0.0), (10.0, 100.0)), 10.5) is None
    assert value_at((), 1.0) is None


def test_a_seed_that_stopped_early_leaves_the_band() -> None:
    points = band((((0.0, 1.0), (50.0, 1.0)), ((0.0, 3.0), (100.0, 3.0))))
    assert [(point.env_steps, point.low, point.seeds) for point in points] == [(0, 1, 2), (50, 1, 2), (100, 3, 1)]


def test_ends_that_miss_each_other_by_a_little_still_count() -> None:
    last = band((((0.0, 1.0), (99.0, 1.0)), ((0.0, 3.0), (100.0, 3.0))))[-1]
    assert (last.env_steps, last.low, last.high, last.seeds) == (100.0, 1.0, 3.0, 2)


def test_what_is_no_number_is_left_out() -> None:
    nan, inf = float("nan"), float("inf")
    assert band((((0.0, 1.0), (1.0, nan), (2.0, inf), (inf, 1.0), (3.0, 1e200), (4.0, 5.0)),)) == (
        BandPoint(0.0, 1.0, 1.0, 1.0, 1),
        BandPoint(4.0, 5.0, 5.0, 5.0, 1),
    )
    assert band(()) == band(((),)) == ()


def test_a_long_curve_is_drawn_with_few_points_that_reach_both_ends() -> None:
    points = band((tuple((float(x), float(x)) for x in range(10_000)),), most=160)
    assert len(points) == 160
    assert (points[0].env_steps, points[-1].env_steps) == (0.0, 9999.0)
    assert all(abs(point.middle - point.env_steps) < 1e-6 for point in points)
