"""`tensorpack.dataflow.imgaug.noname` of 2017; see `tensorpack.dataflow.imgaug.misc`."""
