from classifier import Classifier, train

import tensorpack as tp

train([tp.ModelSaver()])
config = tp.PredictConfig(
    model=Classifier(),
    session_init=tp.SmartInit("train_log/points"),
    input_names=["point"],
    output_names=["probability"],
)
tp.ModelExporter(config).export_serving("exported/1")  # a SavedModel
