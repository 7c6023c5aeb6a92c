"""ExpReplay in a run: the batches it yields, how much is played, and how it ends."""

import threading

import numpy as np
import pytest
from algorithm import Algorithm
from DQNModel import Model
from expreplay import ExpReplay, make_input

import tensorpack as tp
from tensorpack.callbacks import Callback
from tensorpack.train import TrainingInterrupted
from tensorpack.utils.packing.packed_arrays import is_immutable
from tensorpack.utils.stopping import Interrupted
from tests.examples.small_dqn import make_config, read_stats, small_catch, train
from tests.RL.catch import CatchPlayer, CountingCatch
from tests.tiers import first_fast


def make_expreplay(player, **options):
    sizes = {"batch_size": 8, "memory_size": 500, "init_memory_size": 60, **options}
    return ExpReplay((["state"], ["Qvalue"]), player, **sizes)


class BreakingCatch(CatchPlayer):
    """Breaks in the step `at_step`, or calls `action` there; counts the steps after it."""

    def __init__(self, at_step):
        super().__init__(cell=2)
        self._steps_left = at_step
        self.steps_after = 0

    def action(self):
        raise OSError("the emulator broke")

    def _step(self, actions):
        self._steps_left -= 1
        self.steps_after += self._steps_left < 0
        if self._steps_left == 0:
            self.action()
        return super()._step(actions)


def test_what_a_batch_is(log_dir):
    config = make_config(small_catch(num_envs=2))
    seen = []

    class Look(Callback):
        def _trigger_step(self):
            seen.append(next(iter(config.data.ds)))

    config.callbacks.append(Look())
    tp.QueueInputTrainer(config).train()
    frames, action, reward, is_over = seen[0]
    assert (frames.shape, frames.dtype) == ((8, 5, 14, 14), np.uint8)
    assert [(column.shape, column.dtype) for column in [action, reward, is_over]] == [
        ((8,), np.int64),
        ((8,), np.float32),
        ((8,), np.bool_),
    ]
    assert set(np.concatenate([batch[2] for batch in seen])) <= {-1.0, 0.0, 1.0}
    assert is_immutable(frames), "an input queue would copy it"
    with pytest.raises(ValueError, match="read-only"):
        frames[:] = 0
    overs, rewards = (np.concatenate([batch[i] for batch in seen]) for i in (3, 2))
    np.testing.assert_array_equal(overs, rewards != 0)


@pytest.mark.parametrize("num_envs", first_fast([1, 8]))
def test_a_run_plays_in_step_with_the_training_and_closes_its_player(num_envs, log_dir):
    player, alive = small_catch(num_envs, CountingCatch), []
    config = make_config(player, "--eval-every", "9")
    assert config.data.ds.env_steps == 0

    class AtEnd(Callback):
        def _after_train(self):
            alive.extend(threading.enumerate())

    config.callbacks.append(AtEnd())
    tp.QueueInputTrainer(config).train()
    # 60 at first, then 4 a batch; up to 50 batches are in the queue, one is under way, and playing
    # may be 5 grants behind and a tick ahead
    assert 60 + 4 * (20 - 5) <= player.played <= 60 + num_envs + 4 * (20 + 51) + num_envs
    assert config.data.ds.env_steps == player.played
    assert "SimulatorThread" not in [thread.name for thread in alive]
    with pytest.raises(RuntimeError, match="closed"):
        player.reset()


@pytest.mark.parametrize("at_step", first_fast([10, 80]))
def test_a_signal_while_populating_or_playing_ends_the_run(at_step, log_dir):
    player = BreakingCatch(at_step)

    class Give(Callback):
        def _setup_graph(self):
            token = self.trainer.stop_token
            player.action = lambda: token.request(Interrupted(2))

    with pytest.raises(TrainingInterrupted) as caught:
        train(player, "--steps-per-epoch", "100000", callbacks=[Give()])
    assert caught.value.code == 130
    assert player.steps_after <= 1  # the one that the thread may have begun


@pytest.mark.one_row
@pytest.mark.slow
def test_the_training_begins_with_a_whole_transition(log_dir):
    sizes = ["--init-memory-size", "8", "--max-epoch", "1", "--eval-every", "9"]
    train(small_catch(8), *sizes)
    assert read_stats(log_dir)[-1]["global_step"] == 10


def test_a_hint_names_the_flag_that_helps(log_dir):
    hint = make_expreplay(small_catch(8)).bottleneck_hint
    assert hint("data") == "the players are the limit; try --num-players 16"
    assert "--precision bf16" in hint("processor")


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


@pytest.mark.one_row
@pytest.mark.slow
def test_priorities_of_two_towers_come_back_to_their_transitions(log_dir):
    tp.fix_rng_seed(1)
    player, names = small_catch(num_envs=2), (["state"], ["Qvalue"])
    expreplay = ExpReplay(names, player, 16, 300, 60, parts=2, n_step=3, priority=0.5)
    look = Look(expreplay._memory)
    config = tp.TrainConfig(
        data=make_input(expreplay),
        model=Model(player.num_actions, RAINBOW, player.frame_shape),
        callbacks=[expreplay, look],
        steps_per_epoch=30,
        max_epoch=1,
        nr_tower=2,
        deterministic=True,
    )
    tp.SyncMultiGPUTrainerReplicated(config).train()
    assert len(look.seen) == 30 * 2
    for slots, priorities, _, kept, powers in look.seen:
        assert slots.shape == priorities.shape == (8,) and kept.sum() > 4
        last = np.array([slot not in slots[i + 1 :] for i, slot in enumerate(slots)]) & kept
        np.testing.assert_allclose(powers[last], (priorities[last] + 1e-6) ** 0.5, rtol=1e-5)
    assert {1, 3} <= {step for _, _, steps, _, _ in look.seen for step in steps.tolist()}


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
