"""Finds the ROM of an Atari game, and refuses files that are not one.

The emulator ends the whole process, or never returns, if it loads a file that is not a known game.
So files are checked here first.
"""

import importlib.util
import os
from difflib import get_close_matches
from types import ModuleType
from typing import Dict, List, Set

from tensorpack.utils.optional import require

# The largest game is 16 KiB; a larger file is not read.
_MAX_BYTES = 1 << 20


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
      name: such as "breakout.bin", "breakout" or "games/breakout.bin".

    Raises:
      FileNotFoundError: if it is in none of these places; names all three.
    """
    name = os.fspath(name)
    candidates = _candidates(name)
    for path in candidates:
        for suffix in ("", ".bin"):
            if os.path.isfile(path + suffix):
                return path + suffix
    places = "".join(f"\n  {path}" for path in candidates)
    raise FileNotFoundError(
        f"There is no ROM {name!r}.{_advice(candidates)} Looked for as a path, in "
        f"$TENSORPACK_DATASET/atari_rom/ and among the games of ale-py:{places}\nGive the path of "
        "a file, or one of ale-py's names: pip install 'ale-py>=0.9' has them all."
    )


def installed_roms() -> List[str]:
    """Returns the paths of the games that `find_rom` finds by name, without those in this folder.

    A game that is in both places is there once. The files are not looked into.
    """
    found: Dict[str, str] = {}
    for folder in map(os.path.dirname, _candidates("x")[1:]):
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        for name in names:
            if name.endswith(".bin"):
                found.setdefault(name, os.path.join(folder, name))
    return sorted(found.values(), key=os.path.basename)


def _advice(candidates: List[str]) -> str:
    """Returns the nearest names of games in the folders in which one was looked for, in words."""
    games: Set[str] = set()
    for path in candidates:
        folder = os.path.dirname(path)
        if os.path.isdir(folder):
            games.update(each[:-4] for each in os.listdir(folder) if each.endswith(".bin"))
    wanted = os.path.splitext(os.path.basename(candidates[0]))[0].lower()
    names = {each.replace("_", ""): each for each in sorted(games)}
    near = get_close_matches(wanted.replace("_", ""), names, 3)
    return f" Did you mean {' or '.join(names[each] for each in near)}?" if near else ""


def _candidates(name: str) -> List[str]:
    data = os.environ.get("TENSORPACK_DATASET") or os.path.expanduser("~/tensorpack_data")
    paths = [os.path.abspath(name), os.path.join(data, "atari_rom", name)]
    spec = importlib.util.find_spec("ale_py")
    if spec is None or not spec.submodule_search_locations:
        return paths + ["(ale-py is not installed)"]
    return paths + [os.path.join(spec.submodule_search_locations[0], "roms", name)]


def check_rom(path: str) -> str:
    """Checks that a file is a game that the emulator supports; returns the game's name.

    Args:
      path: of the file, as `find_rom` returns it.

    Raises:
      OSError: if it cannot be read.
    """
    path = os.fspath(path)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"There is no file {path}; find_rom(name) finds a ROM by its name.")
    with open(path, "rb") as file:
        size = len(file.read(_MAX_BYTES + 1))
    if not 0 < size <= _MAX_BYTES:
        what = f"larger than {_MAX_BYTES} bytes" if size else "empty"
        raise ValueError(f"{path} is {what}, so it is not an Atari ROM.")
    # By its checksum alone. The emulator would try the file's name next, and crash or hang.
    game = load_ale().ALEInterface.isSupportedROM(path)
    if game is None:
        raise ValueError(
            f"{path} ({size} bytes) is not an Atari ROM that ale-py supports: its checksum is not "
            "in ale-py's list, or the game needs two players. Use the file that comes with ale-py."
        )
    return game
