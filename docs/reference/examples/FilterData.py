from tensorpack.dataflow import DataFromList, FilterData

numbers = DataFromList([[number] for number in range(6)], shuffle=False)
flow = FilterData(numbers, lambda datapoint: datapoint[0] % 2 == 0)
flow.reset_state()
assert list(flow) == [[0], [2], [4]]
