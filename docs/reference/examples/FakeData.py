from tensorpack.dataflow import FakeData

flow = FakeData([[64, 28, 28], [64]], size=100, dtype=["float32", "int32"])
flow.reset_state()
images, labels = next(iter(flow))
assert images.shape == (64, 28, 28) and labels.dtype == "int32"
