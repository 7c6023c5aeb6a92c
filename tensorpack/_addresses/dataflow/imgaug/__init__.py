"""Modules that `tensorpack.dataflow.imgaug` had in older versions."""
