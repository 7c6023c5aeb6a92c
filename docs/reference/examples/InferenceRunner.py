from classifier import batches, train

import tensorpack as tp

# After each epoch: the means of two tensors of the model over another data set.
train([tp.InferenceRunner(batches(5, seed=1), tp.ScalarStats(["cost", "error"]))])
