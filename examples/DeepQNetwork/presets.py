"""Published settings, and ours for few steps, as tables: the name of a flag to its value.

`--preset NAME` sets the flags of a table; a flag that is given too overrides it. What a table does
not name is as without a preset.

`2017`          the main job: Double DQN with Adam, schedules in epochs.
`dqn2015`       Mnih et al., 2015, Human-level control through deep reinforcement learning.
`double2016`    van Hasselt et al., 2016, Deep reinforcement learning with Double Q-learning, with
                the settings of `dqn2015`, not those that were tuned for it.
`dopamine-dqn`  Castro et al., 2018, Dopamine: `jax/agents/dqn/configs/dqn.gin`, which has Adam and
                the squared error.
`dopamine-qr`   Dabney et al., 2018, Distributional reinforcement learning with quantile regression,
                as in `jax/agents/quantile/configs/quantile.gin`.
`rainbow`       Hessel et al., 2018, as in `jax/agents/rainbow/configs/rainbow.gin`: without the
                parts of the paper that `--noisy --dueling --double` add; with noisy layers it has
                no random actions: `--exploration-steps 1 --final-exploration 0`.
`fast`          ours, for less than a million agent steps.

An agent step is an action, which is a transition. `exploration_steps` counts them from the first
update on. `target_sync` counts updates, each of which has `update_freq` agent steps: 8000 agent
steps of Dopamine are 2000 updates. The table of Mnih et al. says 10,000 updates; their program,
and Dopamine, count 10,000 agent steps. Their RMSProp has an epsilon of 0.01 for the sum of the
gradients of a batch; ours has their mean, which is 32 times smaller, and its square 32**2 times.
"""

from typing import Any, Dict, Mapping

__all__ = ["PRESETS"]

_Table = Mapping[str, Any]

# What all of the published settings have in common. Epochs of 25,000 agent steps, evaluated every
# 250,000 of them, which is an iteration of Dopamine.
_PUBLISHED: _Table = {
    "discount": 0.99,
    "batch_size": 32,
    "update_freq": 4,
    "memory_size": 1000000,
    "max_gradient_norm": 0.0,
    "steps_per_epoch": 6250,
    "max_epoch": 2000,  # 50 million agent steps, 200 million frames
    "eval_every": 10,
    "idle_frames": 0,
}

_DQN2015: _Table = {
    **_PUBLISHED,
    "network": "nature",
    "algo": "DQN",
    "loss": "huber",  # the error is clipped to [-1, 1]
    "optimizer": "rmsprop",
    "learning_rate": 2.5e-4,
    "optimizer_epsilon": 0.01 / 32**2,
    "init_memory_size": 50000,
    "target_sync": 10000,
    "exploration_steps": 1000000,
    "final_exploration": 0.1,
    "eval_epsilon": 0.05,
    "sticky": 0.0,
    "life_loss_ends": True,
    "noop_max": 30,
    "max_frames": 18000,  # five minutes
}

_DOPAMINE: _Table = {
    **_PUBLISHED,
    "network": "dopamine",
    "optimizer": "adam",
    "init_memory_size": 20000,
    "target_sync": 2000,
    "exploration_steps": 250000,
    "final_exploration": 0.01,
    "eval_epsilon": 0.001,
    "sticky": 0.25,
    "life_loss_ends": False,
    "noop_max": 0,
    "max_frames": 108000,  # half an hour
}

PRESETS: Dict[str, _Table] = {
    "2017": {},
    "dqn2015": _DQN2015,
    "double2016": {**_DQN2015, "algo": "Double"},
    "dopamine-dqn": {
        **_DOPAMINE,
        "algo": "DQN",
        "loss": "mse",
        "learning_rate": 6.25e-5,
        "optimizer_epsilon": 1.5e-4,
    },
    "dopamine-qr": {
        **_DOPAMINE,
        "algo": "QR",
        "atoms": 200,
        "n_step": 3,
        "priority": 0.5,
        "learning_rate": 5e-5,
        "optimizer_epsilon": 3.125e-4,
    },
    "rainbow": {
        **_DOPAMINE,
        "algo": "C51",
        "atoms": 51,
        "n_step": 3,
        "priority": 0.5,
        "learning_rate": 6.25e-5,
        "optimizer_epsilon": 1.5e-4,
    },
    # Of Dopamine's algorithms QR learns most in the first 750,000 steps. This has twice
    # as many updates per step, each of which is larger and takes half the time, and an exploration
    # that is over after a fifth of the steps, and that finds rewards which are many actions away.
    "fast": {
        **_DOPAMINE,
        "network": "nature",
        "algo": "QR",
        "atoms": 64,
        "n_step": 3,
        "priority": 0.5,
        "dueling": True,
        "munchausen": True,
        "learning_rate": 1e-4,
        "optimizer_epsilon": 1.5e-4,
        "max_gradient_norm": 10.0,
        "update_freq": 2,
        "steps_per_epoch": 12500,  # 25,000 agent steps too
        "init_memory_size": 10000,
        "exploration_steps": 50000,
        "random_repeat": 100,
        "idle_frames": 3600,
        "max_epoch": 30,  # 750,000 agent steps
    },
}
