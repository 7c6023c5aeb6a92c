import numpy as np

from tensorpack.dataflow import imgaug

augmentors = imgaug.AugmentorList([imgaug.Resize((64, 64)), imgaug.Flip(horiz=True, prob=1)])
augmentors.reset_state()
image = np.zeros((32, 32, 3), "uint8")
transform = augmentors.get_transform(image)
assert transform.apply_image(image).shape == (64, 64, 3)
print(transform.apply_coords(np.array([[0.0, 16.0]])))  # the same for points, boxes, masks
