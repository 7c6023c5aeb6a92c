from classifier import train

import tensorpack as tp

train([tp.TensorPrinter(["cost"])], max_epoch=1)  # logs the cost of each step
