import numpy as np

from tensorpack.dataflow import AugmentImageComponent, DataFromList, imgaug

images = DataFromList([[np.zeros((40, 60, 3), "uint8"), 3]])
augmentors = [imgaug.ResizeShortestEdge(36), imgaug.RandomCrop(32), imgaug.Flip(horiz=True)]
flow = AugmentImageComponent(images, augmentors, index=0)
flow.reset_state()
((image, label),) = flow
assert image.shape == (32, 32, 3) and label == 3
