from tensorpack.runs.curves import curve_of, make_band


def test_points_are_in_the_order_of_the_axis_and_have_both_values():
    epochs = [
        {"cost": 4, "step": 1},
        {"cost": 2, "step": 2},
        {"cost": 3},
        {"step": 9, "cost": None},
    ]
    assert curve_of(epochs, "step", "cost") == ([2, 4], [2, 1])
    assert curve_of(epochs, "step", "none") == ([], [])


def test_runs_of_other_steps_are_interpolated():
    band = make_band([([0, 10], [0, 10]), ([5, 15], [0, 10]), ([], [])])
    assert (band.x, band.low, band.high) == ([5, 10], [0, 5], [5, 10])
    assert (band.mean, band.runs) == ([2.5, 7.5], 2)
    apart = make_band([([1, 2], [0, 0]), ([5], [0])])
    assert (apart.x, apart.runs) == ([], 2)
