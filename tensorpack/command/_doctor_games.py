"""What `tensorpack doctor` finds out about games: packages, ROMs, and whether they play."""

import os
from typing import Iterator, List, Mapping

from ._doctor_checks import OK, WARNING, Finding
from ._doctor_tensorflow import probe, why

_SECONDS = 60.0  # for a game of a moment
_ENVIRONMENT = "CartPole-v1"  # which gymnasium and gym have


def check_games(packages: Mapping[str, str]) -> Iterator[Finding]:
    """Plays a game of each kind for which a package is installed.

    Args:
      packages: name of each installed package to its version.
    """
    from tensorpack.RL.rom import installed_roms

    if "ale-py" in packages:
        yield check_atari(f"ale-py {packages['ale-py']}", installed_roms())
    for name in ("gymnasium", "gym"):
        if name in packages:  # the first one is what `GymPlayers` takes
            yield _played("gym", f"{name} {packages[name]}", "gym", _ENVIRONMENT)
            break


def check_atari(package: str, roms: List[str]) -> Finding:
    """Tells how many games there are, and plays one.

    Args:
      package: the emulator and its version.
      roms: paths of the games.
    """
    if not roms:
        advice = "pip install 'ale-py>=0.9' has all; or put files into the data folder's atari_rom"
        return Finding(WARNING, "Atari", f"{package}, but no game", advice)
    known = [path for path in roms if os.path.basename(path) == "breakout.bin"]
    return _played("Atari", f"{package}, {len(roms)} games", "atari", (known or roms)[0])


def _played(topic: str, package: str, kind: str, game: str) -> Finding:
    name = os.path.basename(game)
    probed = probe("_probe_games", [kind, game], _SECONDS)
    if probed.code != 0 or not probed.found:
        text = f"{package}; {name} cannot be played: {why(probed)}"
        advice = f"python -m tensorpack.command._probe_games {kind} {game} shows all"
        return Finding(WARNING, topic, text, advice)
    found = probed.found[-1]
    how = "several at once by its vector" if found["backend"] == "vector" else "one by one"
    text = f"{package}; {name} plays, {how}, {found['speed']:.0f} steps a second"
    return Finding(OK, topic, text)
