"""What every callback must do: the tests that the library has for those of its users, too."""

from tensorpack.testing.callback import CallbackContract, assert_plain, contract_of, frozen

__all__ = ["CallbackContract", "assert_plain", "contract_of", "frozen"]
