import numpy as np
from classifier import Classifier, train

import tensorpack as tp

train([tp.ModelSaver()])
predict = tp.OfflinePredictor(
    tp.PredictConfig(
        model=Classifier(),
        session_init=tp.SmartInit("train_log/points"),  # its newest checkpoint
        input_names=["point"],
        output_names=["probability"],
    )
)
(probability,) = predict(np.array([[0.5, 0.5], [-0.5, 0.5]], "float32"))
print(probability)
