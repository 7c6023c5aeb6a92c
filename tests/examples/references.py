"""The learning of a DQN once more, in plain numpy and float64: networks, targets and losses.

Written from the papers, with loops where the example has tensors.
"""

import numpy as np

ATOMS = np.linspace(-10, 10, 51)


def padded(images, size, stride):
    """Images `[B, H, W, C]` with the zeros around them that "SAME" means for a convolution."""
    spare = [max((-(-n // stride) - 1) * stride + size - n, 0) for n in images.shape[1:3]]
    padding = [(0, 0), *[(each // 2, each - each // 2) for each in spare], (0, 0)]
    return np.pad(images, padding, mode="constant")


def convolution(images, kernel, bias, stride):
    """A convolution without padding; images `[B, H, W, C]`."""
    size = kernel.shape[0]
    rows, columns = ((n - size) // stride + 1 for n in images.shape[1:3])
    result = np.empty([len(images), rows, columns, kernel.shape[3]])
    for i in range(rows):
        for j in range(columns):
            window = images[:, i * stride :, j * stride :][:, :size, :size]
            result[:, i, j] = np.tensordot(window, kernel, 3)
    return result + bias


class Reference:
    """A network and what it learns.

    Args:
      algorithm: an `Algorithm`.
      variables: name to array; those of the target network begin with `target/`.
      noise: for noisy layers, `(pass, layer)` to the noise of inputs and outputs.
    """

    def __init__(self, algorithm, variables, noise=None):
        self.algorithm = algorithm
        self.variables = {name: np.float64(value) for name, value in variables.items()}
        self.noise = noise

    def layer(self, x, name, scope="", number=0):
        def affine(x, layer):
            return x @ self.variables[f"{scope}{layer}/W"] + self.variables[f"{scope}{layer}/b"]

        y = affine(x, name)
        if self.noise is not None:
            inputs, outputs = self.noise[number, name]
            y = y - affine(x * inputs, name + "_sigma") * outputs
        return y

    def features(self, images, scope="", number=0):
        relu = self.algorithm.network != "2017"
        x = images / 255
        for name, stride in [("conv0", 4), ("conv1", 2), ("conv2", 1)]:
            kernel, bias = (self.variables[f"{scope}{name}/{each}"] for each in "Wb")
            if self.algorithm.network != "nature":
                x = padded(x, len(kernel), stride)
            x = convolution(x, kernel, bias, stride)
            slope = 0 if relu else self.variables[f"{scope}{name}/alpha"]
            x = np.where(x > 0, x, slope * x)
        x = self.layer(x.reshape(len(x), -1), "fc0", scope, number)
        return np.where(x > 0, x, (0 if relu else 0.01) * x)

    def numbers(self, images, scope="", fractions=None, number=0):
        """What each action has, `[B, A, N]`; with `fractions` `[B, N]`, those of an IQN."""
        x = self.features(images, scope, number)
        if fractions is None:
            return self.head(x, scope, number)
        cosines = np.cos(np.pi * np.arange(64) * fractions[..., None])
        weights = [self.variables[f"{scope}embedding/{each}"] for each in "Wb"]
        embedded = np.maximum(cosines @ weights[0] + weights[1], 0)
        columns = [self.head(x * embedded[:, i], scope, number) for i in range(fractions.shape[1])]
        return np.concatenate(columns, 2)

    def head(self, x, scope, number):
        if not self.algorithm.dueling:
            return self.shaped(self.layer(x, "fct", scope, number))
        value = self.layer(x, "fctV", scope, number)[:, None]
        advantage = self.shaped(self.layer(x, "fctA", scope, number), value.shape[2])
        return value + advantage - advantage.mean(1, keepdims=True)

    def shaped(self, x, atoms=None):
        atoms = atoms or x.shape[1] // self.actions
        return x.reshape(len(x), -1, atoms)

    actions = 2

    def values(self, numbers):
        if self.algorithm.learns == "c51":
            return softmax(numbers) @ ATOMS
        return numbers.mean(2)

    def rewards(self, reward):
        """The discounted sum of the clipped rewards of each example."""
        reward = np.clip(np.float64(reward).reshape(len(reward), -1), -1, 1)
        return reward @ self.algorithm.discount ** np.arange(reward.shape[1])

    def target(self, now, then, selecting, action, reward, over, steps):
        """The target of each example, from the target network's numbers of both states."""
        result, returns = [], self.rewards(reward)
        for b in range(len(action)):
            gamma = 0.0 if over[b] else self.algorithm.discount ** float(steps[b])
            if self.algorithm.munchausen:
                log_policy = np.log(softmax(self.values(now)[b] / 0.03))
                bonus = 0.9 * np.clip(0.03 * log_policy[action[b]], -1, 0)
                policy = softmax(self.values(then)[b] / 0.03)
                logs = 0.03 * np.where(policy > 0, np.log(np.maximum(policy, 1e-300)), 0)
                soft = sum(p * (z - t) for p, z, t in zip(policy, then[b], logs))
                result.append(returns[b] + bonus + gamma * soft)
                continue
            best = np.argmax(self.values(selecting)[b])
            if self.algorithm.learns == "c51":
                result.append(self.projected(softmax(then[b, best]), returns[b], gamma))
            else:
                result.append(returns[b] + gamma * then[b, best])
        return np.array(result)

    @staticmethod
    def projected(probabilities, reward, gamma):
        """Algorithm 1 of Bellemare et al., 2017."""
        m, dz = np.zeros(51), ATOMS[1] - ATOMS[0]
        for j in range(51):
            b = (np.clip(reward + gamma * ATOMS[j], -10, 10) + 10) / dz
            low, high = int(np.floor(b)), int(np.ceil(b))
            if low == high:
                m[low] += probabilities[j]
            else:
                m[low] += probabilities[j] * (high - b)
                m[high] += probabilities[j] * (b - low)
        return m

    def losses(self, numbers, action, target, fractions=None):
        """The loss of each example, and its priority."""
        taken = numbers[np.arange(len(action)), action]
        if self.algorithm.learns == "c51":
            losses = np.array([-t @ np.log(softmax(each)) for t, each in zip(target, taken)])
            return losses, losses
        if self.algorithm.learns == "values":
            error = (target - taken)[:, 0]
            return (huber(error) if self.algorithm.loss == "huber" else error**2), np.abs(error)
        losses = np.zeros(len(action))
        for b in range(len(action)):
            for i, quantile in enumerate(taken[b]):
                u = target[b] - quantile
                losses[b] += np.mean(np.abs(fractions[b, i] - (u < 0)) * huber(u))
        return losses, losses


def huber(x):
    return np.where(np.abs(x) < 1, 0.5 * x**2, np.abs(x) - 0.5)


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)
