"""Evaluates a policy: whole games, each action drawn from the policy as in the training."""

from acting import sampling

from tensorpack.contrib.games import Evaluator

__all__ = ["PolicyEvaluator"]


class PolicyEvaluator(Evaluator):
    """An `Evaluator` of a predictor that returns probabilities of actions, not their values.

    In many games the most probable action alone leads to a standstill.
    """

    def _setup_graph(self) -> None:
        super()._setup_graph()
        self._predictor = sampling(self._predictor, self._rng)
