"""The actor-critic of the example solves a game of its own: it learns what it should."""

import a3c
import numpy as np
import pytest
from acting import PolicyEvaluator
from model import MAX_GRADIENT_NORM, Model
from rollout import Rollouts

import tensorpack as tp
from tensorpack.tfutils.gradproc import GlobalNormClip
from tensorpack.tfutils.optimizer import apply_grad_processors
from tests.RL.catch import CatchPlayer

CELL = 8  # pixels: frames of 56 x 56, so that the network is small and sees the paddle
UPDATES = 1500  # at most
GAMES = 100  # in an evaluation
SOLVED = 0.9  # mean reward; 1.0 is perfect, chance has -0.7


def make_catch(num_envs):
    return CatchPlayer(num_envs, seed=99, cell=CELL)


class FastStart(Model):
    """Learns by Adam: RMSProp makes small steps until it has seen a thousand gradients."""

    def optimizer(self):
        adam = tp.tfv1.train.AdamOptimizer(1e-3, epsilon=1e-5)
        return apply_grad_processors(adam, [GlobalNormClip(MAX_GRADIENT_NORM)])


class StopWhenSolved(PolicyEvaluator):
    """Evaluates after each epoch; ends the training when that goes well enough."""

    means = ()

    def _play(self):
        scores = super()._play()
        self.means = (*self.means, float(np.mean(scores)))
        if self.means[-1] >= SOLVED:
            raise tp.StopTraining(f"Solved with a mean reward of {self.means[-1]:.2f}.")
        return scores


@pytest.mark.nightly
@pytest.mark.one_row
@pytest.mark.slow
def test_catch_is_solved(log_dir):
    tp.fix_rng_seed(1)
    tp.tfv1.set_random_seed(1)
    player = CatchPlayer(16, seed=1, cell=CELL)
    rollouts = Rollouts(a3c.ACTING, player)
    evaluator = StopWhenSolved(GAMES, *a3c.POLICY, make_catch, num_players=20)
    config = tp.TrainConfig(
        dataflow=rollouts,
        model=FastStart(player.num_actions, player.frame_shape),
        callbacks=[rollouts, evaluator],
        steps_per_epoch=100,
        max_epoch=UPDATES // 100,
    )
    tp.SimpleTrainer(config).train()
    assert max(evaluator.means) >= SOLVED, evaluator.means
