"""Environments stepped together, replay memory and exploration; works without TensorFlow."""

from .atari import AtariPlayers
from .gymenv import GymPlayers
from .history import FrameHistory, epsilon_greedy
from .player import Player, PlayerStep
from .replay import Batch, ReplayMemory
from .rom import check_rom, find_rom
from .wrappers import LimitLength, MapPlayerState, PreventStuck, ProxyPlayer

__all__ = [
    "AtariPlayers",
    "Batch",
    "FrameHistory",
    "GymPlayers",
    "LimitLength",
    "MapPlayerState",
    "Player",
    "PlayerStep",
    "PreventStuck",
    "ProxyPlayer",
    "ReplayMemory",
    "check_rom",
    "epsilon_greedy",
    "find_rom",
]
