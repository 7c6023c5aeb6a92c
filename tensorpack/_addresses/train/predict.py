"""`tensorpack.train.predict` of older versions; see `tensorpack.predict`."""
