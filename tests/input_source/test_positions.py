import pytest

from tensorpack.input_source.positions import Positions


def filled(room, count):
    positions = Positions(room)
    for number in range(count):
        positions.record(number, {"n": number})
    return positions


def test_the_state_of_a_number_is_found_again_and_again():
    positions = filled(None, 5)
    assert positions.at(3) == positions.at(3) == {"n": 3}
    assert positions.at(4) == {"n": 4}


def test_earlier_ones_are_forgotten():
    positions = filled(None, 5)
    positions.at(3)
    for gone in 2, 5:
        with pytest.raises(KeyError):
            positions.at(gone)


def test_only_the_latest_are_kept():
    with pytest.raises(KeyError):
        filled(3, 5).at(1)
    assert filled(3, 5).at(2) == {"n": 2}
