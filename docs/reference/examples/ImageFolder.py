import os

import cv2
import numpy as np

from tensorpack.dataflow import ImageFolder

for name in ["cat", "dog"]:  # images/cat/0.png, ...
    os.makedirs(f"images/{name}")
    for number in range(2):
        cv2.imwrite(f"images/{name}/{number}.png", np.zeros((16, 16, 3), "uint8"))
flow = ImageFolder("images")
flow.reset_state()
for image, label in flow:
    print(image.shape, flow.classes[label])
