"""Finds the ROM of an Atari game, and refuses files that are not one.

The emulator ends the whole process, or never returns, if it loads a file that is not a known game.
So files are checked here first.
"""

import importlib.util
import os
import re
from types import ModuleType
from typing import List

from tensorpack.utils._words import did_you_mean
from tensorpack.utils.optional import require


def load_ale() -> ModuleType:
    """Imports and returns `ale_py`, with its log silenced below errors."""
    ale_py = require("ale_py", "ale-py")
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    return ale_py


def find_rom(name: str) -> str:
    """Returns the path of a game's file.

    Looks for it as a path, then in `$TENSORPACK_DATASET/atari_rom/` (`~/tensorpack_data` where
    that is not set), then among the games that come with ale-py (0.9 and later has them all).

    Args:
      name: such as "breakout.bin", "breakout" or "games/breakout.bin"; FileNotFoundError if it is
        in none of these places.
    """
    name = os.fsdecode(name)
    candidates = [os.path.abspath(name), *_candidates(name)]
    for path in candidates:
        for suffix in ("", ".bin"):
            if os.path.isfile(path + suffix):
                return path + suffix
    places = "".join(f"\n  {path}" for path in candidates)
    game = re.sub("(NoFrameskip|Deterministic)?-v[0-9]+$|[.]bin$", "", os.path.basename(name))
    folders = filter(os.path.isdir, map(os.path.dirname, [candidates[0], *_candidates(game)]))
    files = [file for folder in folders for file in os.listdir(folder)]
    games = [file[: -len(".bin")] for file in files if file.endswith(".bin")]
    near = did_you_mean(re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", game).lower(), games)
    raise FileNotFoundError(
        f"There is no ROM {name!r}.{near} Looked for as a path, in "
        f"$TENSORPACK_DATASET/atari_rom/ and among the games of ale-py:{places}\nGive the path of "
        "a file, or one of ale-py's names: pip install 'ale-py>=0.9' has them all."
    )


def _candidates(name: str) -> List[str]:
    data = os.environ.get("TENSORPACK_DATASET") or os.path.expanduser("~/tensorpack_data")
    paths = [os.path.join(data, "atari_rom", name)]
    spec = importlib.util.find_spec("ale_py")
    if spec is None or not spec.submodule_search_locations:
        return paths + ["(ale-py is not installed)"]
    return paths + [os.path.join(spec.submodule_search_locations[0], "roms", name)]


def check_rom(path: str) -> str:
    """Returns the name of the game in a file; ValueError if the emulator does not support it."""
    path = os.fsdecode(path)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"There is no file {path}; find_rom(name) finds a ROM by its name.")
    with open(path, "rb") as file:
        file.read(1)  # an OSError says why it cannot be read
    # By its checksum alone. The emulator would try the file's name next, and crash or hang.
    game = load_ale().ALEInterface.isSupportedROM(path)
    if game is None:
        raise ValueError(
            f"{path} is not an Atari ROM that ale-py supports: its checksum is not in ale-py's "
            "list, or the game needs two players. Use the file that comes with ale-py."
        )
    return game
