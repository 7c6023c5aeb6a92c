"""Transitions of n steps and by priorities in a run: datapoints, and priorities that come back."""

import numpy as np
import pytest
from algorithm import Algorithm
from DQNModel import Model
from expreplay import ExpReplay, make_input

import tensorpack as tp
from tests.examples.small_dqn import small_catch

RAINBOW = Algorithm(double=False, n_step=3, priority=0.5)


class Look(tp.Callback):
    """Notes slots and priorities of each step, and what the memory makes of them."""

    def __init__(self, memory):
        self._memory = memory
        self.seen = []

    def _setup_graph(self):
        towers = self.trainer.tower_func.towers.training()
        self._fetches = [tower.get_tensors(["slot", "priority", "steps"]) for tower in towers]

    def _before_run(self, ctx):
        return self._fetches

    def _after_run(self, ctx, run_values):
        for slots, priorities, steps in run_values.results:
            with self._memory._lock:
                places, kept = self._memory._rings.find(slots)
                kept &= self._memory._sampleable[places]
                powers = self._memory._tree[places]
            self.seen.append((slots, priorities, steps, kept, powers))


def run(algorithm, towers=1, **options):
    """A short run; returns its config, and what was seen of it."""
    player = small_catch(num_envs=2)
    expreplay = ExpReplay(
        *[(["state"], ["Qvalue"]), player, 16, 300, 60],
        parts=towers,
        n_step=algorithm.n_step,
        priority=algorithm.priority,
    )
    model = Model(player.num_actions, algorithm, player.frame_shape)
    look = Look(expreplay._memory)
    config = tp.TrainConfig(
        data=make_input(expreplay),
        model=model,
        callbacks=[expreplay, look],
        steps_per_epoch=30,
        max_epoch=1,
        nr_tower=towers,
        **options,
    )
    several = tp.SyncMultiGPUTrainerReplicated
    (tp.QueueInputTrainer if towers == 1 else several)(config).train()
    return config, look.seen


@pytest.mark.slow
@pytest.mark.parametrize(
    "towers, deterministic",
    [(1, False), pytest.param(2, True, marks=[pytest.mark.slow, pytest.mark.one_row])],
)
def test_priorities_come_back_to_their_transitions(towers, deterministic, log_dir):
    tp.fix_rng_seed(1)
    config, seen = run(RAINBOW, towers, deterministic=deterministic)
    assert len(seen) == 30 * towers
    for slots, priorities, _, kept, powers in seen:
        assert slots.shape == priorities.shape == (16 // towers,)
        assert kept.sum() > 8 // towers
        last = np.array([slot not in slots[i + 1 :] for i, slot in enumerate(slots)]) & kept
        np.testing.assert_allclose(powers[last], (priorities[last] + 1e-6) ** 0.5, rtol=1e-5)
    assert {1, 3} <= {step for each in seen for step in each[2].tolist()}
    assert config.data.queue.queue_ref.op.get_attr("capacity") == 4 * towers


def test_a_datapoint_has_all_that_the_model_takes(log_dir):
    player = small_catch(num_envs=2)
    names, sizes = (["state"], ["Qvalue"]), (16, 300, 60)
    for algorithm in [RAINBOW, Algorithm(n_step=3), Algorithm(priority=0.5), Algorithm()]:
        expreplay = ExpReplay(
            *[names, player, *sizes], n_step=algorithm.n_step, priority=algorithm.priority
        )
        model = Model(player.num_actions, algorithm, player.frame_shape)
        memory, none = expreplay._memory, np.zeros(2, bool)
        for _ in range(9):
            memory.append(np.ones((2, 14, 14), np.uint8), np.zeros(2, int), none * 1.0, none, none)
        datapoint = expreplay._sample()
        assert len(datapoint) == len(model.inputs())
        for column, spec in zip(datapoint, model.inputs()):
            assert column.dtype == spec.dtype.as_numpy_dtype, spec.name
            assert spec.shape.is_compatible_with(column.shape), spec.name


def test_without_priorities_it_does_not_look_at_steps():
    expreplay = ExpReplay((["state"], ["Qvalue"]), small_catch(), 16, 300, 60, n_step=3)
    assert not expreplay.sees_runs


@pytest.mark.parametrize(
    "options, message",
    [
        ({"n_step": 0}, "ExpReplay: n_step must be at least 1, but got 0"),
        ({"priority": -0.5}, "alpha must be a positive, finite number, but got -0.5"),
        ({"priority": 2}, "alpha must be at most 1, got 2"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        ExpReplay((["state"], ["Qvalue"]), small_catch(), 16, 300, 60, **options)
