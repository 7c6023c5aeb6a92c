from classifier import Classifier, batches

import tensorpack as tp

tp.logger.set_logger_dir("train_log/points", action="d")
data = tp.QueueInput(batches())  # a thread keeps a queue of batches full
config = tp.TrainConfig(model=Classifier(), data=data, max_epoch=2)
tp.launch_train_with_config(config, tp.SimpleTrainer())
