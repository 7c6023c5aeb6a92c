from tensorpack.dataflow import ConcatData, DataFromList

flow = ConcatData([DataFromList([[1], [2]], shuffle=False), DataFromList([[3]])])
flow.reset_state()
assert list(flow) == [[1], [2], [3]]
