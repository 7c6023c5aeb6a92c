"""The DQN of the example solves a game of its own: it learns what it should, from the screen."""

import numpy as np
import pytest
from algorithm import NAMED, Algorithm
from DQNModel import Model
from expreplay import ExpReplay, make_input

import tensorpack as tp
from tensorpack.contrib.games import play_n_episodes
from tests.RL.catch import CatchPlayer

CELL = 4  # pixels: frames of 28 x 28, so that the network is small
UPDATES = 3000  # at most
GAMES = 100  # in an evaluation
SOLVED = 0.9  # mean reward; 1.0 is perfect, chance has -0.7

NSTEP = {"n_step": 3, "priority": 0.5, "network": "dopamine", "double": False}
# With the updates that they need here; plain DQN needs 1,400 to 1,600.
ALGORITHMS = {
    "Double": (NAMED["Double"], 1000),  # 1,100
    "rainbow": (Algorithm(learns="c51", **NSTEP), 500),  # 1,000
    "fast": (Algorithm(learns="qr", atoms=32, dueling=True, munchausen=True, **NSTEP), 500),  # 600
    "iqn": (Algorithm(learns="iqn", atoms=32, **NSTEP), 500),
    "noisy": (NAMED["Double"]._replace(noisy=True), 1000),
}


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


def learn(algorithm, annealed):
    """Trains until the game is solved; returns the mean rewards after each 100 updates.

    After `annealed` updates hardly anything is left to chance.
    """
    tp.fix_rng_seed(1)
    tp.tfv1.set_random_seed(1)
    player = CatchPlayer(seed=1, cell=CELL)
    model = Model(player.num_actions, algorithm, frame_shape=player.frame_shape)
    expreplay = ExpReplay(
        (["state"], [model.acting_output]),
        player,
        batch_size=64,
        memory_size=20000,
        init_memory_size=1000,
        n_step=algorithm.n_step,
        priority=algorithm.priority,
    )
    evaluator = StopWhenSolved()
    schedule = [(0, 1.0), (annealed, 0.05)]
    config = tp.TrainConfig(
        data=make_input(expreplay),
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
    return evaluator.means


# CI asks for the one that has the most parts.
@pytest.mark.one_row
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        each if each == "fast" else pytest.param(each, marks=pytest.mark.nightly)
        for each in ALGORITHMS
    ],
)
def test_catch_is_solved(name, log_dir):
    assert max(learn(*ALGORITHMS[name])) >= SOLVED
