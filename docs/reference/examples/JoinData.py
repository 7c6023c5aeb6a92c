from tensorpack.dataflow import DataFromList, JoinData

images = DataFromList([["image 0"], ["image 1"]], shuffle=False)
labels = DataFromList([[0], [1]], shuffle=False)
flow = JoinData([images, labels])
flow.reset_state()
assert list(flow) == [["image 0", 0], ["image 1", 1]]
