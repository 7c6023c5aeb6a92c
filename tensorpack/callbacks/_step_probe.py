"""Asks a step of the training how long it has waited for its data."""

import time
from typing import Any, List, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import FeedInput
from tensorpack.input_source.waiting import WaitProbe, WaitReading, wait_probes

__all__ = ["StepProbe"]


class StepProbe:
    """What to fetch along with a step, and what the values say.

    Made while ops may still be added to the graph, for a trainer with one op per step. The input
    is a queue that the op takes its data from, or a `FeedInput`; of others nothing is known.

    Args:
      trainer: the trainer.

    Attributes:
      request: to be asked for along with the step; None if nothing can be measured.
    """

    def __init__(self, trainer: Any) -> None:
        config, step_op = trainer.config, trainer.step_op
        self.request: Optional[tf.train.SessionRunArgs] = None
        self._fed = config is not None and isinstance(config.data, FeedInput)
        self._probes: List[WaitProbe] = []
        self._asked_at = 0.0  # on the clock of the graph
        if step_op is None:
            return
        if self._fed:
            self.request = tf.train.SessionRunArgs(tf.timestamp(name="begin"))
            return
        self._probes = [each for each in wait_probes(step_op.graph) if each.belongs_to(step_op)]
        if self._probes:
            self.request = tf.train.SessionRunArgs([each.fetches for each in self._probes])

    def ask(self) -> Optional[tf.train.SessionRunArgs]:
        """Returns `request`, to be used at once."""
        self._asked_at = time.time()
        return self.request

    def read(self, results: Any, longest: float) -> WaitReading:
        """Returns what the results of the request say.

        Args:
          results: of the session.
          longest: seconds that the step has taken; no wait is longer, whatever the clocks say.
        """
        if self._fed:
            return WaitReading(min(max(0.0, results - self._asked_at), longest), None)
        readings = [probe.read(values) for probe, values in zip(self._probes, results)]
        seconds = max(each.seconds for each in readings)
        fills = [each.fill for each in readings if each.fill is not None]
        return WaitReading(min(seconds, longest), min(fills) if fills else None)
