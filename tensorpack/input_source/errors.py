"""What can be wrong with data as a whole, rather than with one datapoint."""

__all__ = ["DataFlowEmpty"]


class DataFlowEmpty(RuntimeError):
    """A dataflow was gone through from beginning to end and gave not a single datapoint."""
