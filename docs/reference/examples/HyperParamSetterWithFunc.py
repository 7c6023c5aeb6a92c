from classifier import train

import tensorpack as tp


def decayed(epoch, value):
    return value * 0.9


train([tp.HyperParamSetterWithFunc("learning_rate", decayed)])
