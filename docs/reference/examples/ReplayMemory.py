import numpy as np

from tensorpack.RL import ReplayMemory

memory = ReplayMemory(1000, frame_shape=(84, 84), history=4, lanes=2)  # two environments
frames, never = np.zeros((2, 84, 84), "uint8"), np.zeros(2, bool)
for step in range(10):
    actions, rewards = np.zeros(2, "int64"), np.full(2, step, "float32")
    memory.append(frames, actions, rewards, terminated=never, truncated=never)
batch = memory.sample(32, np.random.RandomState(0))
print(batch.reward.shape)
