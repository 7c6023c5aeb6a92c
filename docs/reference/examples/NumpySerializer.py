from tensorpack.dataflow import DataFromList, NumpySerializer

NumpySerializer.save(DataFromList([[number, number / 2] for number in range(10)]), "pairs.npz")
flow = NumpySerializer.load("pairs.npz")
flow.reset_state()
assert len(list(flow)) == 10
