from classifier import train

import tensorpack as tp

train([tp.ProgressBar(names=["cost"])])  # the newest cost stands beside the bar
