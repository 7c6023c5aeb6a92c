"""What every flow must do: the tests that the library has for those of its users, too."""

from tensorpack.testing.dataflow import DataFlowContract, assert_plain, assert_same, contract_of

__all__ = ["DataFlowContract", "assert_plain", "assert_same", "contract_of"]
