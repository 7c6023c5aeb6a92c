from classifier import batches, train

import tensorpack as tp

# `wrong` has a number for each datapoint: 1 if it is classified wrongly, else 0.
error = tp.ClassificationError("wrong", summary_name="validation_error")
train([tp.InferenceRunner(batches(5, seed=1), error)])
