"""With --actors: the replay that other processes fill, and what sets the weights that they use."""

from typing import Any, Callable, Dict, Optional, Sequence

import numpy as np
from expreplay import ExpReplay

from tensorpack.RL import RemoteSimulator
from tensorpack.tfutils.varmanip import SessionUpdate


class ActorsReplay(ExpReplay):
    """An `ExpReplay` whose transitions come from actors.

    Args:
      *args: see `ExpReplay`; the player is a `RemotePlayer`.
      get_weights: returns the variables that actors need; called after the graph is built.
      weights_every: steps between two updates of the actors' weights.
      **kwargs: see `ExpReplay`.
    """

    def __init__(
        self,
        *args: Any,
        get_weights: Callable[[], Sequence[Any]],
        weights_every: int = 200,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._get_weights = get_weights
        self._weights_every = weights_every

    def bottleneck_hint(self, limit: str) -> Optional[str]:
        """Returns advice for what limits the speed of the training, see `TimeReport`."""
        if limit in ("data", "draining"):
            return "the actors are the limit; try more workers, or more --num-players"
        return super().bottleneck_hint(limit)

    def __str__(self) -> str:
        return "ExpReplay"  # whose states it has, so that those of other games are refused

    def _make_simulator(self) -> RemoteSimulator:
        return RemoteSimulator(self._player, self._memory)

    def _before_train(self) -> None:
        sess, variables = self.trainer.sess, self._get_weights()
        names = [each.op.name for each in variables]
        fetch: Any = lambda: dict(zip(names, sess.run(variables)))  # noqa: E731
        self._player.group.set_epsilon(self.exploration)  # of a resumed run it is less than 1
        self._player.group.start(fetch, self.trainer.stop_token)
        super()._before_train()

    def _trigger_step(self) -> None:
        if self.global_step % self._weights_every == 0:
            self._player.group.renew()


def setter_of(predictor: Any) -> Callable[[Dict[str, np.ndarray]], None]:
    """Returns what sets all variables of a predictor to the weights of a learner.

    It raises a ValueError if they are of another network.
    """
    variables = predictor.graph.get_collection("variables")
    update = SessionUpdate(predictor.sess, variables)
    ours = {each.op.name: tuple(each.shape.as_list()) for each in variables}

    def set_weights(weights: Dict[str, np.ndarray]) -> None:
        theirs = {name: np.shape(value) for name, value in weights.items()}
        odd = [name for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name)]
        if odd:
            raise ValueError(
                f"The network of the learner is another one, it differs in {', '.join(odd)}: start "
                "all processes with the same --rom, --preset, --algo, --dueling, --noisy, "
                "--network and --atoms."
            )
        update.update(weights)

    return set_weights
