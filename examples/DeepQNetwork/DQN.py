#!/usr/bin/env python
"""Trains a deep Q network on an Atari game; plays with it and evaluates it.

    python DQN.py --rom breakout.bin
    python DQN.py --rom breakout.bin --task eval --load train_log/DQN-breakout/model-250000

In reading order: the numbers, a training (`get_config`: its network, its replay, its callbacks),
then the tasks of the command line (`flags.py`), which `checks.py` checks. What is learned is in
`losses.py`.
"""

import argparse
import os
import sys
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Sequence

import algorithm
import checks
import flags
import numpy as np

# `tp` loads TensorFlow when it is first used, and the modules that need TensorFlow are imported in
# functions: so `--help` and wrong flags are answered at once, and --gpu is in force in time.
import tensorpack as tp
from tensorpack.contrib import game_flags
from tensorpack.contrib.game_flags import FRAME_SKIP, get_player, refusing
from tensorpack.RL import Player, open_screen
from tensorpack.RL.video import enlarge
from tensorpack.utils import fix_rng_seed, logger
from tensorpack.utils.gpu import get_num_gpu
from tensorpack.utils.memory import available_bytes

HISTORY = 4  # frames that make one state
PREDICTOR = (["state"], ["Qvalue"])  # its inputs and its outputs, in evaluations
# Schedules of 2017: (epoch, value after it). Until then the learning rate is the algorithm's.
LEARNING_RATES = [(60, 4e-4), (100, 2e-4)]
EXPLORATION = [(0, 1.0), (10, 0.1), (320, 0.01)]  # linear in between
FINAL_EXPLORATION = 0.01
# The other numbers are flags: see the tables in flags.py, and PRESETS in algorithm.py.

GetPlayer = Callable[[int], Player]


def get_config(
    args: argparse.Namespace, player: Player, get_evaluated: GetPlayer, resume: str = "never"
) -> "tp.TrainConfig":
    """Puts a training together.

    Args:
      args: the flags.
      player: the games to learn from.
      get_evaluated: makes a `Player` with the given number of environments, for evaluations.
      resume: see `TrainConfig`.
    """
    from expreplay import make_input

    game_flags.log_rules(rules_of(args))
    model = make_model(args, player)
    expreplay = make_replay(args, player, model)
    return tp.TrainConfig(
        data=make_input(expreplay),
        model=model,
        callbacks=get_callbacks(args, expreplay, model, get_evaluated),
        # The weights alone: neither the step nor the state of the optimizer.
        session_init=None if args.load is None else tp.InitFrom(args.load),
        steps_per_epoch=args.steps_per_epoch,
        max_epoch=args.max_epoch,
        nr_tower=args.towers,
        # Act on a GPU that does not train if there is one.
        predict_tower=[args.towers] if get_num_gpu() > args.towers else [0],
        resume=resume,
        deterministic=args.deterministic,
        precision=args.precision,
        xla=args.xla,
        commands=flags.commands_of(args, logger.get_logger_dir()),
    )


def make_model(args: argparse.Namespace, player: Player) -> Any:
    """Returns the network, its target network and its cost, a `ModelDesc`."""
    from DQNModel import Model

    return Model(player.num_actions, args.algorithm, player.frame_shape, HISTORY)


def make_replay(args: argparse.Namespace, player: Player, model: Any) -> Any:
    """Returns what plays and remembers, an `ExpReplay`."""
    from expreplay import ExpReplay

    return ExpReplay(
        (PREDICTOR[0], [model.acting_output]),
        player,
        batch_size=args.batch_size,
        memory_size=args.memory_size,
        init_memory_size=args.init_memory_size,
        update_frequency=args.update_freq,
        history_len=HISTORY,
        parts=args.towers,
        life_loss_ends=args.life_loss_ends,
        n_step=args.algorithm.n_step,
        priority=args.algorithm.priority,
        random_repeat=args.random_repeat,
        rules=rules_of(args),
    )


def get_callbacks(
    args: argparse.Namespace, expreplay: Any, model: Any, get_evaluated: GetPlayer
) -> "List[tp.Callback]":
    """Returns the callbacks in the order in which they run."""
    from tensorpack.contrib.games import Evaluator, Progress

    progress = Progress(expreplay, FRAME_SKIP)
    evaluator = Evaluator(
        args.eval_episodes,
        *PREDICTOR,
        get_evaluated,
        history=HISTORY,
        epsilon=args.eval_epsilon,
        game_seconds=progress.seconds_of_a_game,
        video=args.eval_video,
    )
    chance = tp.ObjAttrParam(expreplay, "exploration")
    return [
        *([tp.RunReport()] if args.report else []),
        tp.TimeReport(expreplay),
        tp.ModelSaver(),
        tp.PeriodicTrigger(
            tp.RunOp(model.update_target, verbose=True), every_k_steps=args.target_sync
        ),
        expreplay,
        progress,
        tp.ThroughputTracker(),
        tp.ScheduledHyperParamSetter("learning_rate", **learning_rate(args)),
        tp.ScheduledHyperParamSetter(chance, **exploration(args)),
        tp.PeriodicTrigger(evaluator, every_k_epochs=args.eval_every),
        tp.HumanHyperParamSetter("learning_rate"),
    ]


def learning_rate(args: argparse.Namespace) -> Dict[str, Any]:
    """Returns the arguments of a `ScheduledHyperParamSetter`."""
    rate = args.learning_rate
    return {"schedule": LEARNING_RATES if rate is None else [(0, rate)]}


def exploration(args: argparse.Namespace) -> Dict[str, Any]:
    """Returns the same for the probability of a random action.

    From the first update on, each of them has `update_freq` agent steps.
    """
    if args.exploration_steps is None:
        return {"schedule": EXPLORATION, "interp": "linear"}
    updates = max(1, round(args.exploration_steps / args.update_freq))
    points = [(0, 1.0), (updates, _given(args.final_exploration, FINAL_EXPLORATION))]
    return {"schedule": points, "interp": "linear", "step_based": True}


def rules_of(args: argparse.Namespace) -> Dict[str, Any]:
    """Returns what decides how the scores of two runs compare: names of settings to their values.

    They are saved with the run and compared when it is resumed, see `checks.check_rules`.
    """
    return {
        **algorithm.rules_of(args.algorithm),
        "learning_rate": _given(args.learning_rate, "by epochs"),
        "exploration_steps": _given(args.exploration_steps, "by epochs"),
        "final_exploration": _given(args.final_exploration, FINAL_EXPLORATION),
        "random_repeat": args.random_repeat,
        "target_sync": args.target_sync,
        "batch_size": args.batch_size,
        "update_frequency": args.update_freq,
        "memory_size": args.memory_size,
        "init_memory_size": args.init_memory_size,
        **game_flags.rules_of_games(args),
    }


def _given(value: Any, default: Any) -> Any:
    return default if value is None else value


def train(args: argparse.Namespace, rom: str) -> None:
    """Trains until the last epoch, or until a signal."""
    backend = "single" if args.deterministic else "auto"
    with get_player(args, rom, args.num_players, backend=backend) as player:
        size, envs = args.memory_size, player.num_envs
        with refusing(f"--memory-size {size}", ValueError):
            memory = tp.PrioritizedReplay if args.algorithm.priority else tp.ReplayMemory
            needed = memory.required_bytes(size, player.frame_shape, HISTORY, envs)
            checks.check_memory(size, needed // size + 1, available_bytes())
        _log_game(args, player)
        resume = game_flags.prepare_log_dir(args.logdir, args.resume)
        evaluated = partial(get_player, args, rom, seed=0, evaluated=True)
        trainer = tp.QueueInputTrainer if args.towers == 1 else tp.SyncMultiGPUTrainerReplicated
        trainer(get_config(args, player, evaluated, resume)).train()


def evaluate(args: argparse.Namespace, rom: str) -> None:
    """Plays whole games and logs their scores."""
    from tensorpack.contrib.games import play_n_episodes

    n = args.eval_episodes
    with get_player(args, rom, min(n, 8), evaluated=True) as player:
        _log_game(args, player)
        game_flags.log_rules(game_flags.rules_of_games(args))
        with _load_predictor(args, player) as predictor, tp.get_tqdm(None, "Evaluation", n) as bar:
            scores = play_n_episodes(
                *(player, predictor, n, HISTORY, args.eval_epsilon),
                on_tick=lambda _, ended: bar.update(ended),
            )
    logger.info(f"Average Score: {np.mean(scores)}; Max Score: {np.max(scores)}")


def play(args: argparse.Namespace, rom: str) -> None:
    """Plays one game in a window or into a video file."""
    from tensorpack.contrib.games import play_n_episodes

    with get_player(args, rom, 1) as player:
        _log_game(args, player)
        with _load_predictor(args, player) as predictor:
            logger.info("Playing one game; Ctrl-C ends it, and keeps the video so far.")
            screen = open_screen(args.video, os.path.join(args.logdir, "play.mp4"))
            with screen, tp.get_tqdm(desc="Playing") as bar:
                scores = play_n_episodes(
                    *(player, predictor, 1, HISTORY, args.eval_epsilon),
                    on_tick=lambda *_: bar.update(),
                    watch=lambda _: screen.show(enlarge(player.screen())),
                )
    logger.info(f"Total: {scores[0]}")


def _log_game(args: argparse.Namespace, player: Player) -> None:
    logger.info(f"ROM: {args.rom}, Num Actions: {player.num_actions}")
    if args.fire_on_reset and not getattr(player, "fire_on_reset", True):
        logger.info("--fire-on-reset changes nothing: this game has no FIRE.")


def _load_predictor(args: argparse.Namespace, player: Player) -> Any:
    from tensorpack.contrib.games import AllWeights

    advice = "give the --preset, the flags of the network and the game that it was trained with"
    with refusing(f"--load {args.load}", tp.VariableMismatch):
        return tp.OfflinePredictor(
            tp.PredictConfig(
                make_model(args, player),
                input_names=PREDICTOR[0],
                output_names=PREDICTOR[1],
                session_init=AllWeights(args.load, advice),
                precision=args.precision,
                xla=args.xla,
            )
        )


def start(args: argparse.Namespace) -> None:
    """Does the task of these flags."""
    rom = game_flags.find_game(args.rom)
    if args.gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = args.gpu
    if args.seed is not None:
        fix_rng_seed(args.seed)
    if args.task == "train":
        checks.check_towers(args.towers)
    game_flags.check_precision(args.precision)
    if args.load is not None:
        args.load = game_flags.find_weights(args.load)
    {"train": train, "play": play, "eval": evaluate}[args.task](args, rom)


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Does the task that the command line names.

    Raises:
      SystemExit: with code 2 where the command line is wrong, see also `Trainer.train`.
    """
    start(flags.parse(argv))


def run(script: str = __file__) -> None:
    """Does what `main` does, as a program; also a Ctrl-C outside of the training exits with its
    code. A script that imports this module gives its own path, to be named in commands.
    """
    try:
        args = flags.parse()
        args.script = script
        if args.task == "train":  # shows the shapes of layers, the table of variables
            os.environ.setdefault("TENSORPACK_VERBOSE", "1")
        start(args)
    except KeyboardInterrupt as stop:
        sys.exit(getattr(stop, "code", 130))


if __name__ == "__main__":
    run()
