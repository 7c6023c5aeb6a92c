"""`tensorpack.dataflow.imgaug.noname` of 2017; see `tensorpack.dataflow.imgaug.misc`."""

from tensorpack.dataflow.imgaug import Flip, RandomResize, Resize, ResizeShortestEdge, Transpose

__all__ = ["Flip", "RandomResize", "Resize", "ResizeShortestEdge", "Transpose"]
