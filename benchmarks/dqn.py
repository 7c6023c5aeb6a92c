"""R1 to R3 and R17: the examples DeepQNetwork and A3C as they train, beside their update and peers.

A training is timed between two of its steps, within the first epoch, which is never over: what is
done once in 25,000 steps is not in the figures. All flags have their defaults but the sizes of the
replay memory.
"""

import argparse
import contextlib
import os
import sys
import tempfile
import time
from functools import partial

from _contest import Contest
from _programs import HERE, example, fresh, on_cores, rate_of

sys.path.insert(0, str(HERE / "peers"))

import _update

SMALL = ["--init-memory-size", "3000", "--memory-size", "20000"]
NUM_ACTIONS = 4
WARM_UP = 20  # updates alone


def whole(steps, rom, flags=()):
    """Updates per second of the main job; `flags` are those of `train_dqn` or of DQN.py."""
    return fresh(train_dqn, steps, rom, list(flags))


def bare(seconds, flags=()):
    """Updates per second of the graph alone; `flags` are those of DQN.py."""
    return fresh(update_dqn, seconds, list(flags))


def whole_run(steps=300, seconds=10.0, rom="breakout.bin", exploration=0.91, flags=()):
    """The whole run against its update alone, on the TensorFlow that runs this.

    `--steps` updates count, and `--seconds` of the update alone. Flags of DQN.py are for both:
    `--num-players 4`, `--precision bf16`, `--xla`, `--preset fast`.
    """
    sides = {
        "run": lambda: whole(steps, rom, ["--exploration", exploration, *flags]),
        "bare update": lambda: bare(seconds, flags),
    }
    yield Contest("whole DQN run / bare update", sides, target=">= 0.95")


def gain(steps=300, rom="breakout.bin", precision=("fp32", "bf16")):
    """The whole run on this TensorFlow against tensorpack 0.11 on TensorFlow 1.15.5."""
    from tensorpack.RL import find_rom

    peer = ["tensorpack_dqn.py", "--rom", find_rom(rom), "--steps", steps]
    for each in precision:
        yield Contest(
            f"whole DQN run, {each} / tensorpack 0.11",
            {"run": lambda each=each: whole(steps, rom, _precision(each))},
            {"tensorpack 0.11": lambda: rate_of(*peer, peer="tensorpack-0.11")},
            target={"fp32": ">= 2.0", "bf16": ">= 3.0"}[each],
        )


def against_sb3(steps=200, games=1, precision="fp32"):
    """The whole run against stable-baselines3 with the same network, batch and frequency.

    stable-baselines3 learns by plain Q-learning: two forward passes to the three of the Double-DQN.
    Its update is in float32 in any case: it has no other.
    """
    flags = ["--num-players", games, *_precision(precision)]
    peer = ["--steps", steps, "--games", games]
    yield Contest(
        f"whole DQN run, games: {games}, {precision} / stable-baselines3",
        {"run": lambda: whole(steps, "breakout.bin", flags)},
        {"stable-baselines3": lambda: rate_of("sb3.py", "dqn", *peer, peer="sb3")},
        target=">= 1.5",
        note="plain Q-learning",
    )


def actor_critic(steps=8000, processes=False, precision="fp32", cores=(1, 2), seconds=60):
    """The actor-critic of examples/A3C against others, in steps of the games per second.

    stable-baselines3's A2C with the same network, rollouts and costs; with `--processes` it has a
    process a game. The same in PyTorch on EnvPool, as CleanRL's loops go, and Sample Factory, which
    plays and learns at once, for `--seconds`; both pinned to one core and to two.
    """
    from tensorpack.RL import find_rom

    ours = ["--steps", steps]
    peer = [*ours, *(["--processes"] if processes else [])]
    run, note = [fresh, train_a3c, steps, _precision(precision)], precision.replace("fp32", "")
    yield Contest(
        "actor-critic, steps of 16 games / stable-baselines3's A2C",
        {"run": lambda: fresh(*run[1:])},
        {"stable-baselines3": lambda: rate_of("sb3.py", "a2c", *peer, peer="sb3")},
        unit="steps/s",
        target=">= 2",
        note=note,
    )
    long = ["sample_factory.py", "--roms", os.path.dirname(find_rom("breakout.bin"))]
    long += ["--seconds", seconds]
    for count in cores:
        where = f"{count} core{'s' if count > 1 else ''}"
        yield Contest(
            f"actor-critic, steps of 16 games, {where} / the best peer",
            {"run": on_cores(count, *run)},
            {
                "EnvPool": on_cores(count, rate_of, "envpool_a2c.py", *ours, peer="envpool"),
                "Sample Factory": on_cores(count, rate_of, *long, peer="sample-factory"),
            },
            unit="steps/s",
            target=">= 1",
            note=note,
        )


def _precision(name):
    # without the flag it is the default, whatever the others are called
    return [] if name == "fp32" else ["--precision", name]


def stopwatch(steps_done, warm_up, steps, at_start=lambda: None, at_end=lambda: None):
    """A callback that times steps after the first ones, and then ends the training.

    Args:
      steps_done: how many steps are done, given the callback.
      warm_up: steps that do not count.
      steps: steps that do.
      at_start, at_end: called before the epoch, and when the rate is known.
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


def train_dqn(steps, rom, argv):
    """Trains the main job, prints where the time went, and returns updates per second.

    Args:
      steps: updates that count.
      rom: the game.
      argv: `--exploration`, the probability of an action by chance; `--warm-up`, updates that do
        not count; `--staging`, copy a batch to the GPU ahead; and flags of DQN.py.
    """
    example("DeepQNetwork")
    import DQN
    import flags
    from DQN import get_player

    import tensorpack as tp
    from tensorpack.input_source import StagingInput
    from tensorpack.RL import find_rom

    parser = argparse.ArgumentParser()
    parser.add_argument("--exploration", type=float, default=0.91)
    parser.add_argument("--warm-up", type=int, default=60)
    parser.add_argument("--staging", action="store_true")
    ours, theirs = parser.parse_known_args([str(each) for each in argv])
    with tempfile.TemporaryDirectory() as folder:
        args = flags.parse(["--rom", rom, "--logdir", os.path.join(folder, "log"), *SMALL, *theirs])
        game = find_rom(rom)
        with get_player(args, game, args.num_players) as player:
            resume = tp.prepare_log_dir(args.logdir, args.resume)
            config = DQN.get_config(args, player, lambda n: get_player(args, game, n), resume)
            explore = partial(setattr, config.data.ds, "exploration", ours.exploration)
            report = next(each for each in config.callbacks if isinstance(each, tp.TimeReport))
            done = lambda each: each.local_step + 1  # noqa: E731
            watch = stopwatch(done, ours.warm_up, steps, explore, report.trigger)
            config.callbacks.append(watch)
            if ours.staging:
                config.data = StagingInput(config.data)
            several = tp.SyncMultiGPUTrainerReplicated
            (tp.QueueInputTrainer if args.towers == 1 else several)(config).train()
    return watch.rate


def train_a3c(steps, argv, warm_up=1600):
    """Trains examples/A3C with flags of a3c.py; returns steps of the games per second."""
    example("A3C")
    import a3c
    import a3c_flags
    from a3c import get_player

    import tensorpack as tp
    from tensorpack.RL import find_rom

    with tempfile.TemporaryDirectory() as folder:
        logdir, endless = os.path.join(folder, "log"), ["--steps-per-epoch", "1000000"]
        args = a3c_flags.parse(["--rom", "breakout.bin", "--logdir", logdir, *endless, *argv])
        game = find_rom(args.rom)
        with get_player(args, game, args.num_players) as player:
            resume = tp.prepare_log_dir(args.logdir, args.resume)
            config = a3c.get_config(args, player, lambda n: get_player(args, game, n), resume)
            rollouts = config.dataflow
            watch = stopwatch(lambda each: rollouts.env_steps, warm_up, steps)
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
            data=TensorInput(lambda: _constants(tf, model, args.batch_size)),
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
        for _ in range(WARM_UP):
            update()
        count, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            update()
            count += 1
        return count / (time.perf_counter() - start)


def _constants(tf, model, batch):
    """One batch of random numbers for the inputs, kept in the graph."""
    specs = [
        ([batch, *each.shape.as_list()[1:]], each.dtype.as_numpy_dtype) for each in model.inputs()
    ]
    made = []
    for i, array in enumerate(_update.random_arrays(specs)):
        # variables, because what is computed from constants alone is computed only once
        kept = tf.get_variable(f"data{i}", initializer=array, trainable=False, use_resource=True)
        made.append(kept + 0 if array.dtype != bool else tf.logical_or(kept, False))
    return made
