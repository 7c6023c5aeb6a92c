import numpy as np

from tensorpack.dataflow import BatchData, DataFromList

pairs = [[np.zeros((28, 28), "float32"), label] for label in range(10)]
flow = BatchData(DataFromList(pairs), 4, remainder=True)  # without it: two batches of 4
flow.reset_state()
for images, labels in flow:
    print(images.shape, labels)  # (4, 28, 28), (4, 28, 28), (2, 28, 28)
