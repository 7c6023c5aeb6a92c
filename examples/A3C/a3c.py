#!/usr/bin/env python
"""Trains an advantage actor-critic on an Atari game; plays with it and evaluates it.

    python a3c.py --rom breakout.bin
    python a3c.py --rom breakout.bin --task eval --load train_log/A3C-breakout

`main` parses the command line (`a3c_flags.py`) and does one of three tasks: `train`, `evaluate` or
`play`. `get_config` puts the training together. Numbers without a flag are constants here and in
`model.py`. What any program on games has (flags, checks, evaluations) is in `tensorpack.contrib`.
"""

import argparse
import os
import sys
from functools import partial
from typing import Any, Callable, List, Optional, Sequence

import a3c_flags
import numpy as np

# `tp` loads TensorFlow when it is first used, and the modules that need TensorFlow are imported in
# functions: so `--help` and wrong flags are answered at once, and --gpu is in force in time.
import tensorpack as tp
from tensorpack.contrib import game_flags
from tensorpack.contrib.game_flags import FRAME_SKIP, get_player, rules_of_games
from tensorpack.RL import Player, open_screen
from tensorpack.utils import fix_rng_seed, get_rng, logger

HISTORY = 4  # frames that make one state
DISCOUNT = 0.99  # per action
EVALUATED_AT_ONCE = 8  # games
POLICY = (["state"], ["policy"])  # inputs and outputs of what evaluates and plays
ACTING = (["state"], ["policy", "value"])  # the same of what plays to learn


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Does the task that the command line names.

    Raises:
      SystemExit: with code 2 where the command line is wrong, see also `Trainer.train`.
    """
    args = a3c_flags.parse(argv)
    rom = game_flags.find_game(args.rom)
    if args.gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = args.gpu
    if args.seed is not None:
        fix_rng_seed(args.seed)
    game_flags.check_precision(args.precision)
    if args.load is not None:
        args.load = game_flags.find_weights(args.load)
    {"train": train, "play": play, "eval": evaluate}[args.task](args, rom)


def train(args: argparse.Namespace, rom: str) -> None:
    """Trains until the last epoch, or until a signal."""
    backend = "single" if args.deterministic else "auto"
    with get_player(args, rom, args.num_players, backend=backend) as player:
        logger.info(f"ROM: {args.rom}, Num Actions: {player.num_actions}")
        resume = game_flags.prepare_log_dir(args.logdir, args.resume)
        evaluated = partial(get_player, args, rom, seed=0, evaluated=True)
        config = get_config(args, player, evaluated, resume)
        tp.SimpleTrainer(config).train()


def get_config(
    args: argparse.Namespace,
    player: Player,
    get_evaluated: Callable[[int], Player],
    resume: str = "never",
) -> "tp.TrainConfig":
    """Puts a training together.

    Args:
      args: the flags.
      player: the games to learn from.
      get_evaluated: makes a `Player` with the given number of environments, for evaluations.
      resume: see `TrainConfig`.
    """
    from rollout import Rollouts

    rules = {"learning_rate": args.learning_rate, **rules_of_games(args)}
    game_flags.log_rules({"num_players": player.num_envs, "rollout": args.rollout, **rules})
    rollouts = Rollouts(ACTING, player, args.rollout, HISTORY, DISCOUNT, args.life_loss_ends, rules)
    return tp.TrainConfig(
        dataflow=rollouts,
        model=_make_model(args, player),
        callbacks=get_callbacks(args, rollouts, get_evaluated),
        # The weights alone: neither the step nor the state of the optimizer.
        session_init=None if args.load is None else tp.InitFrom(args.load),
        steps_per_epoch=args.steps_per_epoch,
        max_epoch=args.max_epoch,
        resume=resume,
        deterministic=args.deterministic,
        precision=args.precision,
        commands=a3c_flags.commands_of(args, logger.get_logger_dir()),
    )


def get_callbacks(
    args: argparse.Namespace, rollouts: Any, get_evaluated: Callable[[int], Player]
) -> "List[tp.Callback]":
    """Returns the callbacks in the order in which they run."""
    from acting import PolicyEvaluator

    from tensorpack.contrib.games import Progress

    evaluator = PolicyEvaluator(
        args.eval_episodes,
        *POLICY,
        get_evaluated,
        num_players=EVALUATED_AT_ONCE,
        history=HISTORY,
        epsilon=args.eval_epsilon,
    )
    rates = [(0, args.learning_rate), (args.max_epoch, 0.0)]
    return [
        tp.TimeReport(rollouts),
        tp.ModelSaver(),
        rollouts,
        Progress(rollouts, FRAME_SKIP),
        tp.ThroughputTracker(),
        tp.ScheduledHyperParamSetter("learning_rate", rates, interp="linear"),
        tp.PeriodicTrigger(evaluator, every_k_epochs=args.eval_every),
        tp.HumanHyperParamSetter("learning_rate"),
    ]


def evaluate(args: argparse.Namespace, rom: str) -> None:
    """Plays whole games and logs their scores."""
    from acting import sampling

    from tensorpack.contrib.games import play_n_episodes

    n = args.eval_episodes
    player = get_player(args, rom, min(n, EVALUATED_AT_ONCE), evaluated=True)
    with player, tp.get_tqdm(total=n, desc="Evaluation") as bar:
        logger.info(f"ROM: {args.rom}, Num Actions: {player.num_actions}")
        with _load_predictor(args, player) as predictor:
            scores = play_n_episodes(
                player,
                sampling(predictor, get_rng()),
                n,
                HISTORY,
                args.eval_epsilon,
                on_tick=lambda _, ended: bar.update(ended),
            )
    logger.info(f"Average Score: {np.mean(scores)}; Max Score: {np.max(scores)}")


def play(args: argparse.Namespace, rom: str) -> None:
    """Plays one game in a window or into a video file."""
    from acting import sampling

    from tensorpack.contrib.games import play_n_episodes

    with get_player(args, rom, 1) as player:
        logger.info(f"ROM: {args.rom}, Num Actions: {player.num_actions}")
        with _load_predictor(args, player) as predictor:
            with open_screen(args.video, os.path.join(args.logdir, "play.mp4")) as screen:
                scores = play_n_episodes(
                    player,
                    sampling(predictor, get_rng()),
                    1,
                    HISTORY,
                    args.eval_epsilon,
                    on_tick=lambda *_: screen.show(player.screen()),
                )
    logger.info(f"Total: {scores[0]}")


def _make_model(args: argparse.Namespace, player: Player) -> Any:
    from model import Model

    return Model(player.num_actions, player.frame_shape, HISTORY, args.learning_rate)


def _load_predictor(args: argparse.Namespace, player: Player) -> Any:
    from tensorpack.contrib.games import AllWeights

    weights = AllWeights(args.load, "give the game that it was trained on")
    with game_flags.refusing(f"--load {args.load}", tp.VariableMismatch):
        return tp.OfflinePredictor(
            tp.PredictConfig(
                _make_model(args, player),
                input_names=POLICY[0],
                output_names=POLICY[1],
                session_init=weights,
                precision=args.precision,
            )
        )


def run() -> None:
    """Runs `main` as a program; also a Ctrl-C outside of the training exits with its code."""
    try:
        main()
    except KeyboardInterrupt as stop:
        sys.exit(getattr(stop, "code", 130))


if __name__ == "__main__":
    run()
