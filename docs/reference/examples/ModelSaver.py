from classifier import train

import tensorpack as tp

train([tp.ModelSaver(max_to_keep=3)])
assert tp.get_checkpoint_path("train_log/points").endswith("model-40")  # the newest: step 40
