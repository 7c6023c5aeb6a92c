from tensorpack.dataflow import DataFromList, LocallyShuffleData

in_order = DataFromList([[number] for number in range(1000)], shuffle=False)
flow = LocallyShuffleData(in_order, 100)  # keeps 100 datapoints, yields one of them at random
flow.reset_state()
print([number for (number,) in flow][:10])
