from classifier import train

import tensorpack as tp

# `learning_rate` is a variable of the model; it changes at the end of epoch 1 and of epoch 2.
train([tp.ScheduledHyperParamSetter("learning_rate", [(1, 0.003), (2, 0.001)])], max_epoch=3)
