from tensorpack.dataflow import CacheData, DataFromList, MapData

slow = MapData(DataFromList([[1], [2], [3]]), lambda datapoint: [datapoint[0] ** 2])
flow = CacheData(slow, shuffle=True)  # computed in the first pass, then kept in memory
flow.reset_state()
assert sorted(flow) == sorted(flow) == [[1], [4], [9]]
