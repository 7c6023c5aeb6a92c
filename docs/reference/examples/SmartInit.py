from classifier import Classifier, batches, train

import tensorpack as tp

train([tp.ModelSaver()])
config = tp.TrainConfig(
    model=Classifier(),
    data=tp.QueueInput(batches()),
    session_init=tp.SmartInit("train_log/points"),  # also a checkpoint, .npz file or dict
    max_epoch=1,
)
tp.logger.set_logger_dir("train_log/second", action="d")
tp.launch_train_with_config(config, tp.SimpleTrainer())
