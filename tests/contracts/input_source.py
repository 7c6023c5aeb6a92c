"""What every input source must do: the tests that the library has for those of its users, too."""

from tensorpack.testing.input_source import InputSourceContract, InputStateContract

__all__ = ["InputSourceContract", "InputStateContract"]
