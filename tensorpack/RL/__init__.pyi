"""Public names for editors and type checkers; made by scripts/public_names."""

from typing import List

from .atari import AtariPlayers as AtariPlayers
from .envbase import AutoRestartPlayer as AutoRestartPlayer
from .envbase import DiscreteActionSpace as DiscreteActionSpace
from .envbase import LimitLengthPlayer as LimitLengthPlayer
from .envbase import PreventStuckPlayer as PreventStuckPlayer
from .envbase import RLEnvironment as RLEnvironment
from .episodes import Episode as Episode
from .episodes import EpisodeCounter as EpisodeCounter
from .episodes import EpisodeLog as EpisodeLog
from .gymenv import GymEnv as GymEnv
from .gymenv import GymPlayers as GymPlayers
from .history import FrameHistory as FrameHistory
from .history import HistoryFramePlayer as HistoryFramePlayer
from .history import epsilon_greedy as epsilon_greedy
from .pacer import Pacer as Pacer
from .player import Player as Player
from .player import PlayerStep as PlayerStep
from .prioritized import PrioritizedReplay as PrioritizedReplay
from .prioritized import WeightedBatch as WeightedBatch
from .replay import Batch as Batch
from .replay import NStepBatch as NStepBatch
from .replay import ReplayMemory as ReplayMemory
from .rom import check_rom as check_rom
from .rom import find_rom as find_rom
from .scores import RunScores as RunScores
from .scores import read_scores as read_scores
from .simulator import Agent as Agent
from .simulator import RandomActions as RandomActions
from .simulator import Simulator as Simulator
from .simulator import SimulatorThread as SimulatorThread
from .simulator import restore_games as restore_games
from .video import GameVideo as GameVideo
from .video import VideoFile as VideoFile
from .video import open_screen as open_screen
from .wrappers import LimitIdle as LimitIdle
from .wrappers import LimitLength as LimitLength
from .wrappers import MapPlayerState as MapPlayerState
from .wrappers import PreventStuck as PreventStuck
from .wrappers import ProxyPlayer as ProxyPlayer

__all__: List[str]
