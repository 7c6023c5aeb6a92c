from classifier import batches, train

import tensorpack as tp

# Logged as `test_error`, in the log, in stats.json and in TensorBoard.
train([tp.InferenceRunner(batches(5, seed=1), tp.ScalarStats("error", prefix="test"))])
