from tensorpack.dataflow import DataFromList, MapData


def halve(datapoint):
    number, label = datapoint
    return [number / 2, label] if label else None  # None drops it


flow = MapData(DataFromList([[1.0, 0], [2.0, 1]]), halve)
flow.reset_state()
assert list(flow) == [[1.0, 1]]
