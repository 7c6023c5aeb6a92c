"""R1 to R3 and R17: the examples DeepQNetwork and A3C as they train, beside their parts and peers.

A training is timed between two of its steps, within the first epoch, which is never over: what is
done once in 25,000 steps is not in the figures. All flags have their defaults but the sizes of the
replay memory.
"""

import argparse
import contextlib
import importlib
import itertools
import os
import tempfile
import time
from functools import partial

import _update
import numpy as np
from _clock import per_second
from _contest import Contest
from _programs import example, fresh, on_cores, rate_of

SMALL = ["--init-memory-size", "3000", "--memory-size", "20000"]
NUM_ACTIONS = 4
TRAFFIC = 10**8  # bytes, which an update moves at least: no cache keeps the weights over it


def whole(steps, rom, flags=()):
    """Updates per second of the main job; `flags` are those of `main_job`."""
    return fresh(train_dqn, steps, rom, list(flags))


def bare(seconds, flags=()):
    """Updates per second of the graph alone; `flags` are those of DQN.py."""
    return fresh(update_dqn, seconds, list(flags))


def whole_run(steps=300, seconds=10.0, rom="breakout.bin", exploration=0.91, flags=()):
    """The whole run against its update alone, and against its bound, on the TensorFlow of this.

    The bound is the update and the acting, measured apart and added: of the acting (games,
    predictions with cold caches, memory, sampling) its processor time, shared by all cores.
    `--steps` updates count, and `--seconds` of the update alone. Flags of DQN.py are for all:
    `--num-players 4`, `--precision bf16`, `--xla`, `--preset fast`.
    """
    flags, acting = list(flags), ["--exploration", exploration, *flags]
    columns = yield Contest(
        "whole DQN run / bare update",
        {"run": lambda: whole(steps, rom, acting), "bare update": lambda: bare(seconds, flags)},
        target=">= 0.95",
    )
    act = fresh(act_dqn, steps, rom, acting)
    bounds = [1 / (1 / update + 1 / act) for update in columns["bare update"]]
    sides = {"run": columns["run"], "update and acting": bounds}
    yield Contest("whole DQN run / bare update and acting, measured apart", sides, target=">= 0.97")


def gain(steps=300, rom="breakout.bin", precision=("fp32", "bf16")):
    """The whole run on this TensorFlow against tensorpack 0.11 on TensorFlow 1.15.5."""
    from tensorpack.RL import find_rom

    peer = ["tensorpack_dqn.py", "--rom", find_rom(rom), "--steps", steps]
    for name in precision:
        yield Contest(
            f"whole DQN run, {name} / tensorpack 0.11",
            {"run": partial(whole, steps, rom, ["--precision", name])},
            {"tensorpack 0.11": partial(rate_of, *peer, peer="tensorpack-0.11")},
            target={"fp32": ">= 2.0", "bf16": ">= 3.0"}[name],
        )


def against_sb3(steps=200, games=1, precision="fp32"):
    """The whole run against stable-baselines3 with the same network, batch and frequency.

    stable-baselines3 learns by plain Q-learning: two forward passes to the three of the Double-DQN.
    Its update is in float32 in any case: it has no other.
    """
    flags = ["--num-players", games, "--precision", precision]
    peer = ["sb3.py", "--kind", "dqn", "--steps", steps, "--games", games]
    yield Contest(
        f"whole DQN run, games: {games}, {precision} / stable-baselines3 (plain Q-learning)",
        {"run": partial(whole, steps, "breakout.bin", flags)},
        {"stable-baselines3": partial(rate_of, *peer, peer="sb3")},
        target=">= 1.5",
    )


def actor_critic(steps=8000, cores=(1, 2)):
    """The actor-critic of examples/A3C against others, in steps of the games per second.

    Against the A2C of stable-baselines3 with the same network, rollouts and costs; and against the
    same in PyTorch on EnvPool, as CleanRL's loops go, pinned to one core and to two.
    """
    run, what = partial(fresh, train_a3c, steps), "actor-critic, steps of 16 games"
    a2c = partial(rate_of, "sb3.py", "--kind", "a2c", "--steps", steps, peer="sb3")
    envpool = partial(rate_of, "envpool_a2c.py", "--steps", steps, peer="envpool")
    yield Contest(
        f"{what} / stable-baselines3's A2C",
        *({"run": run}, {"stable-baselines3": a2c}, "steps/s"),
        target=">= 2",
    )
    for count in cores:
        yield Contest(
            f"{what}, {count} core{'s' if count > 1 else ''} / EnvPool",
            {"run": on_cores(count, run)},
            {"EnvPool": on_cores(count, envpool)},
            unit="steps/s",
            target=">= 1",
        )


def stopwatch(steps_done, warm_up, steps, at_start=lambda: None, at_end=lambda: None):
    """A callback that times `steps` after `warm_up` others, and then ends the training.

    `steps_done(callback)` counts them; `at_start` is called before the epoch, `at_end` at last.
    """
    import tensorpack as tp

    class Stopwatch(tp.Callback):
        """Has `rate`, the steps per second, in the end."""

        def _before_epoch(self):
            self._start = None
            at_start()

        def _trigger_step(self):
            now, done = time.perf_counter(), steps_done(self)
            if self._start is None and done >= warm_up:
                self._start = now, done
            elif self._start is not None and done >= self._start[1] + steps:
                self.rate = (done - self._start[1]) / (now - self._start[0])
                at_end()
                raise tp.StopTraining("That is enough to know.")

    return Stopwatch()


@contextlib.contextmanager
def job(folder, program, flags, argv):
    """The configuration of the training of an example, and its flags."""
    example(folder)
    import tensorpack as tp
    from tensorpack.RL import find_rom

    program, flags = map(importlib.import_module, (program, flags))
    with tempfile.TemporaryDirectory() as logs:
        args = flags.parse(["--logdir", os.path.join(logs, "log"), *argv])
        get_player = partial(program.get_player, args, find_rom(args.rom))
        with get_player(args.num_players) as player:
            resume = tp.prepare_log_dir(args.logdir, args.resume)
            yield program.get_config(args, player, get_player, resume), args


def main_job(rom, argv):
    """The same of the main job; and flags beside its own, which `argv` has together.

    `--exploration`, the probability of an action by chance; `--warm-up`, updates that do not count;
    `--staging`, copy a batch to the GPU ahead.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--exploration", type=float, default=0.91)
    parser.add_argument("--warm-up", type=int, default=60)
    parser.add_argument("--staging", action="store_true")
    ours, theirs = parser.parse_known_args([str(arg) for arg in argv])
    return job("DeepQNetwork", "DQN", "flags", ["--rom", rom, *SMALL, *theirs]), ours


def train_dqn(steps, rom, argv):
    """Trains the main job, prints where the time went, and returns updates per second."""
    started, ours = main_job(rom, argv)
    with started as (config, args):
        import tensorpack as tp
        from tensorpack.input_source import StagingInput

        explore = partial(setattr, config.data.ds, "exploration", ours.exploration)
        report = next(cb for cb in config.callbacks if isinstance(cb, tp.TimeReport))
        done = lambda cb: cb.local_step + 1  # noqa: E731
        watch = stopwatch(done, ours.warm_up, steps, explore, report.trigger)
        config.callbacks.append(watch)
        if ours.staging:
            config.data = StagingInput(config.data)
        several = tp.SyncMultiGPUTrainerReplicated
        (tp.QueueInputTrainer if args.towers == 1 else several)(config).train()
    return watch.rate


def act_dqn(steps, rom, argv):
    """The main job without updates; returns for how many a second its processor time would do."""
    started, ours = main_job(rom, argv)
    with started as (config, args):
        import tensorpack as tp
        from tensorpack.input_source import TensorInput

        replay, model, seconds = config.data.ds, config.model, []
        memory = np.ones(TRAFFIC, np.uint8)  # zeros would be one page

        class Act(tp.Callback):
            """Draws batches, and so has their transitions played; comes after the replay."""

            def _before_train(self):
                replay.exploration = ours.exploration
                batches = iter(replay)
                for _ in range(steps):
                    others = time.process_time() - time.thread_time()
                    memory.max()  # drives the weights out of the caches, while other threads act
                    this = time.thread_time()
                    next(batches)
                    seconds.append(time.process_time() - others - this)
                raise tp.StopTraining("That is enough to know.")

        config.callbacks.append(Act())
        config.data = TensorInput(lambda: _constants(model, args.batch_size))
        tp.SimpleTrainer(config).train()
    return len(os.sched_getaffinity(0)) / np.mean(seconds[steps // 4 :])


def train_a3c(steps, warm_up=1600):
    """Trains examples/A3C; returns steps of the games per second."""
    argv = ["--rom", "breakout.bin", "--steps-per-epoch", "1000000"]
    with job("A3C", "a3c", "a3c_flags", argv) as (config, _):
        import tensorpack as tp

        watch = stopwatch(lambda _: config.dataflow.env_steps, warm_up, steps)
        config.callbacks.append(watch)
        tp.SimpleTrainer(config).train()
    return watch.rate


@contextlib.contextmanager
def update_alone(argv):
    """The session and the trainer of the update of the main job, on data in the graph."""
    example("DeepQNetwork")
    import flags
    from DQNModel import Model

    from tensorpack.compat import tfv1 as tf
    from tensorpack.input_source import TensorInput
    from tensorpack.train import SimpleTrainer, TrainConfig

    args = flags.parse(["--rom", "none.bin", *argv])
    with tf.Graph().as_default():
        model = Model(NUM_ACTIONS, args.algorithm, (84, 84), 4)
        config = TrainConfig(
            data=TensorInput(lambda: _constants(model, args.batch_size)),
            model=model,
            steps_per_epoch=1,
            precision=args.precision,
            xla=args.xla,
        )
        trainer = SimpleTrainer(config)
        trainer._setup()
        with config.session_creator.create_session() as sess:
            yield sess, trainer


def update_dqn(seconds, argv):
    """Calls the update of the main job, prebuilt, on data in the graph; returns updates/s."""
    with update_alone(argv) as (sess, trainer):
        update = sess.make_callable(trainer.train_op)
        return per_second((update() for _ in itertools.count()), seconds, warm_up=2.0)


def _constants(model, batch):
    """One batch of random numbers for the inputs, kept in the graph."""
    from tensorpack.compat import tfv1 as tf

    specs = [([batch, *s.shape.as_list()[1:]], s.dtype.as_numpy_dtype) for s in model.inputs()]
    tensors = []
    for i, array in enumerate(_update.random_arrays(specs)):
        # variables, because what is computed from constants alone is computed only once
        var = tf.get_variable(f"data{i}", initializer=array, trainable=False, use_resource=True)
        tensors.append(var + 0 if array.dtype != bool else tf.logical_or(var, False))
    return tensors
