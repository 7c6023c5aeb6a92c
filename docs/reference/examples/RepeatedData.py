from tensorpack.dataflow import DataFromList, RepeatedData

flow = RepeatedData(DataFromList([[1], [2]], shuffle=False), 3)  # -1: forever
flow.reset_state()
assert list(flow) == [[1], [2]] * 3
