from classifier import batches, train

import tensorpack as tp

validation = tp.InferenceRunner(batches(5, seed=1), tp.ScalarStats("error"))
# Ends the run when 3 epochs in a row have brought no lower error.
train([validation, tp.EarlyStop("validation_error", patience=3)], max_epoch=30)
