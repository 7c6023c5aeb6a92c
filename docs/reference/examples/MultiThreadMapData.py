import time

from tensorpack.dataflow import DataFromList, MultiThreadMapData


def load(datapoint):
    time.sleep(0.01)  # threads help where a function waits: for files, or in OpenCV
    return [datapoint[0] * 2]


numbers = DataFromList([[number] for number in range(20)])
flow = MultiThreadMapData(numbers, num_thread=4, map_func=load, buffer_size=10, strict=True)
flow.reset_state()
assert sorted(flow) == [[2 * number] for number in range(20)]
