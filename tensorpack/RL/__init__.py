"""Environments stepped together, what plays and fills a replay memory; works without TensorFlow.

A module is loaded when one of its names is first used; `__init__.pyi` has the names for editors.
"""

_NAMES = {  # module -> its public names; then run scripts/public_names
    "atari": "AtariPlayers",
    "envbase": """AutoRestartPlayer DiscreteActionSpace LimitLengthPlayer PreventStuckPlayer
        RLEnvironment""",
    "episodes": "Episode EpisodeCounter EpisodeLog",
    "gymenv": "GymEnv GymPlayers",
    "history": "FrameHistory HistoryFramePlayer epsilon_greedy",
    "pacer": "Pacer",
    "player": "Player PlayerStep",
    "prioritized": "PrioritizedReplay WeightedBatch",
    "replay": "Batch NStepBatch ReplayMemory",
    "rom": "check_rom find_rom",
    "scores": "RunScores read_scores",
    "simulator": "Agent RandomActions Simulator SimulatorThread restore_games",
    "video": "GameVideo VideoFile open_screen",
    "wrappers": "LimitIdle LimitLength MapPlayerState PreventStuck ProxyPlayer",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)
