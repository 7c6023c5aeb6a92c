"""The value that says what is learned: its names, and what it refuses."""

import pytest
from algorithm import NAMED, Algorithm, get_algorithm


def test_names_are_values_that_pass_the_checks():
    for name, algorithm in NAMED.items():
        assert get_algorithm(name) is algorithm
        assert get_algorithm(algorithm) is algorithm
    assert get_algorithm("Double") == Algorithm()


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"learns": "c50"}, "learns must be one of values, c51, qr, iqn, got 'c50'"),
        ({"network": "2018"}, "network must be one of"),
        ({"atoms": -1}, "atoms must be at least 0"),
        ({"n_step": 0}, "n_step must be at least 1, got 0"),
        ({"priority": 1.5}, r"priority must be in \[0, 1\], got 1.5"),
        ({"discount": 99.0}, r"discount must be in \[0, 1\], got 99.0"),
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
        ({"max_gradient_norm": -1.0}, "max_gradient_norm must be at least 0"),
        ({"atoms": 51}, "atoms=51 has no effect with learns='values': leave it out"),
        ({"learns": "qr", "loss": "mse"}, "loss='mse' has no effect with learns='qr'"),
        ({"munchausen": True}, "munchausen=True needs double=False"),
        ({"munchausen": True, "double": False, "learns": "c51"}, "munchausen=True needs learns="),
    ],
)
def test_a_field_out_of_range_is_named(fields, message):
    with pytest.raises(ValueError, match=message):
        get_algorithm(Algorithm(**fields))


def test_an_unknown_name_lists_those_there_are():
    with pytest.raises(ValueError, match="Double, DQN, Dueling, C51, QR, IQN, got 'Rainbow'"):
        get_algorithm("Rainbow")
