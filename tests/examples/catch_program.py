"""The program `DQN.py` with the game of catch in the place of an Atari game."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "DeepQNetwork"))

import DQN
import flags

from tensorpack.utils import fix_rng_seed
from tests.examples.running import small_catch


def main():
    """Trains as the command line says."""
    args = flags.parse()
    if args.seed is not None:
        fix_rng_seed(args.seed)
    with small_catch(args.num_players) as player:
        DQN.train_on(args, player, small_catch)


if __name__ == "__main__":
    main()
