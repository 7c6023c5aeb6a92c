"""Environments stepped together, replay memory and exploration; works without TensorFlow."""

from .atari import AtariPlayers
from .common import AutoRestartPlayer, LimitLengthPlayer, PreventStuckPlayer
from .envbase import DiscreteActionSpace, NaiveRLEnvironment, RLEnvironment
from .gymenv import GymEnv, GymPlayers
from .history import FrameHistory, HistoryFramePlayer, epsilon_greedy
from .player import Player, PlayerStep
from .prioritized import PrioritizedReplay, WeightedBatch
from .replay import Batch, NStepBatch, ReplayMemory
from .rom import check_rom, find_rom
from .wrappers import LimitIdle, LimitLength, MapPlayerState, PreventStuck, ProxyPlayer

__all__ = [
    "AtariPlayers",
    "AutoRestartPlayer",
    "Batch",
    "DiscreteActionSpace",
    "FrameHistory",
    "GymEnv",
    "GymPlayers",
    "HistoryFramePlayer",
    "LimitIdle",
    "LimitLength",
    "LimitLengthPlayer",
    "MapPlayerState",
    "NStepBatch",
    "NaiveRLEnvironment",
    "Player",
    "PlayerStep",
    "PreventStuck",
    "PreventStuckPlayer",
    "PrioritizedReplay",
    "ProxyPlayer",
    "RLEnvironment",
    "ReplayMemory",
    "WeightedBatch",
    "check_rom",
    "epsilon_greedy",
    "find_rom",
]
