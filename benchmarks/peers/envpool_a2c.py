"""An actor-critic on EnvPool, as CleanRL's loops go: what R17 is held against. Prints steps/s.

    .venv-peer-envpool/bin/python benchmarks/peers/envpool_a2c.py [--steps 8000]

One process: all games in one call of EnvPool, in its threads; one network in PyTorch; rollouts in
tensors that are made once. Network, games, rollouts, costs, clipping and optimizer are those of the
A2C of stable-baselines3, which R17 has too.
"""

import os
import time

import envpool
import torch
from _clock import parse_args, print_rate
from torch import nn

GAMES, ROLLOUT, WARM_UP = 16, 5, 1600
DISCOUNT, ENTROPY, VALUE, MAX_NORM = 0.99, 0.01, 0.5, 0.5


class Agent(nn.Module):
    """The logits of the actions, and the value."""

    def __init__(self, actions):
        super().__init__()
        self.features = nn.Sequential(
            *(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU()),
            *(nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten()),
            *(nn.Linear(64 * 7 * 7, 512), nn.ReLU()),
        )
        self.heads = nn.Linear(512, actions + 1)

    def forward(self, states):
        found = self.heads(self.features(states / 255.0))
        return found[:, :-1], found[:, -1]


def main():
    """Measures and prints."""
    args = parse_args(__doc__, steps=8000)
    cores = len(os.sched_getaffinity(0))
    torch.set_num_threads(cores)
    games = envpool.make(
        "Breakout-v5",
        env_type="gymnasium",
        num_envs=GAMES,
        num_threads=cores,
        episodic_life=True,
        reward_clip=True,
        seed=0,
    )
    agent = Agent(games.action_space.n)
    optimizer = torch.optim.RMSprop(agent.parameters(), 7e-4, 0.99, 1e-5)
    states = torch.zeros((ROLLOUT, GAMES, 4, 84, 84))
    actions = torch.zeros((ROLLOUT, GAMES), dtype=torch.int64)
    rewards, ends = torch.zeros((2, ROLLOUT, GAMES))
    state, done, start = torch.from_numpy(games.reset()[0]), 0, None
    while start is None or done < WARM_UP + args.steps:
        if start is None and done >= WARM_UP:
            start, begun = time.perf_counter(), done
        for step in range(ROLLOUT):
            states[step] = state
            with torch.no_grad():
                logits, _ = agent(states[step])
            actions[step] = torch.distributions.Categorical(logits=logits).sample()
            state, reward, over, cut, _ = games.step(actions[step].numpy())
            state, rewards[step] = torch.from_numpy(state), torch.from_numpy(reward)
            ends[step] = torch.from_numpy(over | cut)
            done += GAMES
        with torch.no_grad():
            value = agent(state.float())[1]
        wanted = torch.zeros_like(rewards)
        for step in reversed(range(ROLLOUT)):
            value = rewards[step] + DISCOUNT * value * (1 - ends[step])
            wanted[step] = value
        logits, values = agent(states.flatten(0, 1))
        policy, wanted = torch.distributions.Categorical(logits=logits), wanted.flatten()
        gained = -(policy.log_prob(actions.flatten()) * (wanted - values.detach())).mean()
        cost = (
            gained + VALUE * (wanted - values).square().mean() - ENTROPY * policy.entropy().mean()
        )
        optimizer.zero_grad()
        cost.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), MAX_NORM)
        optimizer.step()
    print_rate("steps", (done - begun) / (time.perf_counter() - start))


if __name__ == "__main__":
    main()
