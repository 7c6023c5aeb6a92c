#!/usr/bin/env python
"""Trains a deep Q network on an Atari game; plays with it and evaluates it.

    python DQN.py --rom breakout.bin
    python DQN.py --rom breakout.bin --task eval --load train_log/DQN-breakout/model-250000

`main` parses the command line (`flags.py`), checks it (`checks.py`) and does one of three tasks:
`train`, `evaluate` or `play`. `get_config` puts the training together.
"""

import argparse
import os
import sys
from functools import partial
from typing import Any, Callable, List, Mapping, Optional, Sequence

import checks
import flags
import games
import numpy as np
import settings
from games import FRAME_SKIP, get_player

# `tp` loads TensorFlow when it is first used, and the modules that need TensorFlow are imported in
# functions: so `--help` and wrong flags are answered at once, and --gpu is in force in time.
import tensorpack as tp
from tensorpack.RL import Player, ReplayMemory
from tensorpack.utils import fix_rng_seed, get_rng, logger
from tensorpack.utils.cluster import Cluster
from tensorpack.utils.gpu import get_num_gpu
from tensorpack.utils.memory import available_bytes
from tensorpack.utils.rng import SeedTree

HISTORY = 4  # frames that make one state
PREDICTOR = (["state"], ["Qvalue"])  # its inputs and its outputs, in evaluations


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Does the task that the command line names.

    Raises:
      SystemExit: with code 2 where the command line is wrong, see also `Trainer.train`.
    """
    start(flags.parse(argv))


def start(args: argparse.Namespace) -> None:
    """Does the task of these flags."""
    rom = checks.find_game(args.rom)
    cluster = checks.find_group(args)
    is_actor = cluster is not None and not cluster.is_chief
    if args.gpu is not None or is_actor:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1" if is_actor else args.gpu
    if args.seed is not None:
        number = cluster.index if cluster is not None else 0
        fix_rng_seed(SeedTree(args.seed).child("actor", number).integer() if number else args.seed)
    if cluster is not None and not is_actor:
        checks.give_cores(cluster)
    if args.task == "train" and not is_actor:
        checks.check_towers(args.towers)
    checks.check_precision(args.precision)
    if args.load is not None:
        args.load = checks.find_weights(args.load)
    if cluster is not None:
        (act if is_actor else learn)(args, rom, cluster)
    else:
        {"train": train, "play": play, "eval": evaluate}[args.task](args, rom)


def _check_memory(args: argparse.Namespace, player: Player) -> None:
    """Ends the program if the replay memory would not fit into the free memory."""
    size, envs = args.memory_size, player.num_envs
    with checks.refusing(f"--memory-size {size}", ValueError):
        needed = ReplayMemory.required_bytes(size, player.frame_shape, HISTORY, envs)
        checks.check_memory(size, needed // size + 1, available_bytes())


def train(args: argparse.Namespace, rom: str) -> None:
    """Trains until the last epoch, or until a signal."""
    backend = "single" if args.deterministic else "auto"
    with get_player(args, rom, args.num_players, backend=backend) as player:
        train_on(args, player, lambda n: get_player(args, rom, n, 0, evaluated=True))


def learn(args: argparse.Namespace, rom: str, cluster: Cluster) -> None:
    """Trains on the games that the other processes of a group play."""
    from group import ActorGroup
    from learner import RemotePlayer

    with get_player(args, rom, args.num_players) as like:
        remote = RemotePlayer(like, ActorGroup(checks.addresses_of(cluster), args.key))
    with remote as player:
        train_on(args, player, lambda n: get_player(args, rom, n, 0, evaluated=True))


def act(args: argparse.Namespace, rom: str, cluster: Cluster) -> None:
    """Plays for the learner of a group until the training is over; see `actor.play`."""
    import actor
    from simulator import Agent

    with get_player(args, rom, args.num_players) as player:
        _log_game(args, player)
        one_thread = tp.tfv1.ConfigProto(
            intra_op_parallelism_threads=1, inter_op_parallelism_threads=1
        )
        with _make_predictor(args, player, True, session_config=one_thread) as predictor:
            agent = Agent(predictor, player, HISTORY, get_rng(), args.random_repeat)
            actor.play(
                cluster.index,
                checks.addresses_of(cluster),
                player,
                agent,
                predictor,
                args.key,
                args.life_loss_ends,
            )


def train_on(
    args: argparse.Namespace, player: Player, get_evaluated: Callable[[int], Player]
) -> None:
    """Trains on the games of any player; see `get_config` for the arguments."""
    _check_memory(args, player)
    _log_game(args, player)
    resume = checks.prepare_log_dir(args.logdir, args.resume)
    config = get_config(args, player, get_evaluated, resume)
    several = tp.SyncMultiGPUTrainerReplicated
    (tp.QueueInputTrainer if args.towers == 1 else several)(config).train()


def _log_game(args: argparse.Namespace, player: Player) -> None:
    logger.info(f"ROM: {args.rom}, Num Actions: {player.num_actions}")
    if args.fire_on_reset and not getattr(player, "fire_on_reset", True):
        logger.info("--fire-on-reset changes nothing: this game has no FIRE.")


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
    from DQNModel import Model
    from sampling import make_input

    rules = settings.rules_of(args)
    settings.log_rules(rules)
    model = Model(player.num_actions, args.algorithm, player.frame_shape, HISTORY)
    expreplay = _get_replay(args, player, model, rules)
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


def _get_replay(
    args: argparse.Namespace, player: Player, model: Any, rules: Mapping[str, Any]
) -> Any:
    make: Callable[..., Any]
    if args.actors:
        from learner import ActorsReplay

        make = partial(ActorsReplay, get_weights=model.weights, weights_every=args.weights_every)
    else:
        from expreplay import ExpReplay

        make = ExpReplay
    return make(
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
        rules=rules,
    )


def get_callbacks(
    args: argparse.Namespace, expreplay: Any, model: Any, get_evaluated: Callable[[int], Player]
) -> "List[tp.Callback]":
    """Returns the callbacks in the order in which they run."""
    from common import EpochTimeWithoutGPU, Evaluator, Progress

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
        EpochTimeWithoutGPU(),
        tp.TimeReport(expreplay),
        tp.ModelSaver(),
        tp.PeriodicTrigger(
            tp.RunOp(model.update_target, verbose=True), every_k_steps=args.target_sync
        ),
        expreplay,
        progress,
        tp.ThroughputTracker(),
        tp.ScheduledHyperParamSetter("learning_rate", **settings.learning_rate(args)),
        tp.ScheduledHyperParamSetter(chance, **settings.exploration(args)),
        tp.PeriodicTrigger(evaluator, every_k_epochs=args.eval_every),
        tp.HumanHyperParamSetter("learning_rate"),
    ]


def evaluate(args: argparse.Namespace, rom: str) -> None:
    """Plays whole games and logs their scores."""
    from common import play_n_episodes

    n = args.eval_episodes
    with get_player(args, rom, min(n, 8), evaluated=True) as player:
        _log_game(args, player)
        settings.log_rules(games.rules_of(args))
        with _load_predictor(args, player) as predictor, tp.get_tqdm(None, "Evaluation", n) as bar:
            scores = play_n_episodes(
                player,
                predictor,
                n,
                HISTORY,
                args.eval_epsilon,
                on_tick=lambda _, ended: bar.update(ended),
            )
    logger.info(f"Average Score: {np.mean(scores)}; Max Score: {np.max(scores)}")


def play(args: argparse.Namespace, rom: str) -> None:
    """Plays one game in a window or into a video file."""
    from common import play_n_episodes
    from video import ValuePanel, names_of, open_screen

    with get_player(args, rom, 1) as player:
        _log_game(args, player)
        with _load_predictor(args, player) as predictor:
            logger.info("Playing one game; Ctrl-C ends it, and keeps the video so far.")
            screen = open_screen(args.video, os.path.join(args.logdir, "play.mp4"))
            with screen, tp.get_tqdm(desc="Playing") as bar:
                panel = ValuePanel(names_of(player))
                scores = play_n_episodes(
                    player,
                    predictor,
                    1,
                    HISTORY,
                    args.eval_epsilon,
                    on_tick=lambda *_: bar.update(),
                    watch=lambda _, *decision: screen.show(panel.draw(player.screen(), *decision)),
                )
    logger.info(f"Total: {scores[0]}")


def _load_predictor(args: argparse.Namespace, player: Player) -> Any:
    from weights import AllWeights, OtherNetwork

    advice = "give the --preset, the flags of the network and the game that it was trained with"
    with checks.refusing(f"--load {args.load}", OtherNetwork):
        return _make_predictor(args, player, session_init=AllWeights(args.load, advice))


def _make_predictor(
    args: argparse.Namespace, player: Player, to_learn: bool = False, **options: Any
) -> Any:
    from DQNModel import Model

    model = Model(player.num_actions, args.algorithm, player.frame_shape, HISTORY)
    inputs, outputs = PREDICTOR
    return tp.OfflinePredictor(
        tp.PredictConfig(
            model,
            input_names=inputs,
            output_names=[model.acting_output] if to_learn else outputs,
            precision=args.precision,
            xla=args.xla,
            **options,
        )
    )


def run() -> None:
    """Runs `main` as a program; also a Ctrl-C outside of the training exits with its code."""
    try:
        args = flags.parse()
        if args.task == "train":  # shows the shapes of layers, the table of variables
            os.environ.setdefault("TENSORPACK_VERBOSE", "1")
        start(args)
    except KeyboardInterrupt as stop:
        sys.exit(getattr(stop, "code", 130))


if __name__ == "__main__":
    run()
