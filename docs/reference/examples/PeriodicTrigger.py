from classifier import train

import tensorpack as tp

# A callback that would act after each epoch acts after every 10 steps instead.
train([tp.PeriodicTrigger(tp.ModelSaver(), every_k_steps=10)])
