import cv2
import numpy as np

from tensorpack.dataflow import ImageFromFile

for number in range(3):
    cv2.imwrite(f"{number}.png", np.full((32, 40, 3), 80 * number, "uint8"))
flow = ImageFromFile(["0.png", "1.png", "2.png"], channel=3, resize=(16, 16))
flow.reset_state()
for (image,) in flow:
    print(image.shape)  # (16, 16, 3), RGB
