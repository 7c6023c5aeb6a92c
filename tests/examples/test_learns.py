"""The DQN of the example solves a game of its own: it learns what it should, from the screen."""

import numpy as np
import pytest
from common import play_n_episodes
from DQNModel import Model
from expreplay import ExpReplay

import tensorpack as tp
from tests.examples.catch import CatchPlayer

CELL = 4  # pixels: frames of 28 x 28, so that the network is small
UPDATES = 3000  # at most
ANNEALED = 1000  # updates after which hardly anything is left to chance
GAMES = 100  # in an evaluation
SOLVED = 0.9  # mean reward; 1.0 is perfect, chance has -0.7


class StopWhenSolved(tp.Callback):
    """Evaluates without chance after each epoch; ends the training when that goes well enough."""

    def __init__(self):
        self.means = []

    def _setup_graph(self):
        self._predictor = self.trainer.get_predictor(["state"], ["Qvalue"])

    def _trigger(self):
        with CatchPlayer(num_envs=20, seed=99, cell=CELL) as player:
            rewards = play_n_episodes(
                player,
                self._predictor,
                GAMES,
                epsilon=0.0,
                on_tick=lambda *_: self.trainer.check_stop(),
            )
        self.means.append(float(np.mean(rewards)))
        self.trainer.monitors.put_scalar("mean_reward", self.means[-1])
        if self.means[-1] >= SOLVED:
            raise tp.StopTraining(f"Solved with a mean reward of {self.means[-1]:.2f}.")


@pytest.mark.slow
def test_catch_is_solved(log_dir):
    tp.fix_rng_seed(1)
    tp.tfv1.set_random_seed(1)
    player = CatchPlayer(seed=1, cell=CELL)
    expreplay = ExpReplay(
        (["state"], ["Qvalue"]), player, batch_size=64, memory_size=20000, init_memory_size=1000
    )
    model = Model(player.num_actions, frame_shape=player.frame_shape)
    evaluator = StopWhenSolved()
    schedule = [(0, 1.0), (ANNEALED, 0.05)]
    config = tp.TrainConfig(
        dataflow=expreplay,
        model=model,
        callbacks=[
            tp.PeriodicTrigger(tp.RunOp(model.update_target), every_k_steps=250),
            expreplay,
            tp.ScheduledHyperParamSetter(
                tp.ObjAttrParam(expreplay, "exploration"), schedule, "linear", step_based=True
            ),
            evaluator,
        ],
        steps_per_epoch=100,
        max_epoch=UPDATES // 100,
    )
    tp.QueueInputTrainer(config).train()
    assert max(evaluator.means) >= SOLVED
