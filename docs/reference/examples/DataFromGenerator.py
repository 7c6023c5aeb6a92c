from tensorpack.dataflow import DataFromGenerator


def numbers():
    for number in range(3):
        yield [number]


flow = DataFromGenerator(numbers)  # the function, so that each pass begins at 0
flow.reset_state()
assert list(flow) == list(flow) == [[0], [1], [2]]
