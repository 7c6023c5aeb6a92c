"""What can be wrong with data as a whole, rather than with one datapoint."""

__all__ = ["DataFlowEmpty", "QueueClosed"]


class DataFlowEmpty(RuntimeError):
    """A dataflow was gone through from beginning to end and gave not a single datapoint."""


class QueueClosed(RuntimeError):
    """A queue or its session was closed by somebody who had not asked for the end of the run."""
