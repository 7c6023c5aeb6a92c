from classifier import batches, train

import tensorpack as tp

validation = tp.InferenceRunner(batches(5, seed=1), tp.ScalarStats("error"))
train([validation, tp.ModelSaver(), tp.MinSaver("validation_error")])  # in this order
