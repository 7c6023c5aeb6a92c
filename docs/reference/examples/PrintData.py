from tensorpack.dataflow import FakeData, PrintData

flow = PrintData(FakeData([[64, 28, 28], [64]], dtype=["float32", "int32"]))
flow.reset_state()
next(iter(flow))  # logs the type, shape and range of each component of the first datapoint
