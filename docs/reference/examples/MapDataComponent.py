import numpy as np

from tensorpack.dataflow import DataFromList, MapDataComponent

images = DataFromList([[np.full((2, 2), 255, "uint8"), 7]])
flow = MapDataComponent(images, lambda image: image.astype("float32") / 255, index=0)
flow.reset_state()
((image, label),) = flow
assert image.max() == 1 and label == 7
