from classifier import Classifier, batches

import tensorpack as tp

config = tp.TrainConfig(
    model=Classifier(),
    data=tp.QueueInput(batches()),
    callbacks=[tp.ModelSaver()],
    steps_per_epoch=20,  # without it: one pass over the dataflow
    max_epoch=2,
    resume=tp.prepare_log_dir("train_log/points", "auto"),
)
tp.launch_train_with_config(config, tp.SimpleTrainer())
