from tensorpack.dataflow import DataFromList, MultiProcessMapData


def square(datapoint):
    return [datapoint[0] ** 2]


if __name__ == "__main__":
    numbers = DataFromList([[number] for number in range(100)])
    flow = MultiProcessMapData(numbers, 2, square, buffer_size=20, strict=True)
    flow.reset_state()
    assert sorted(flow) == [[number**2] for number in range(100)]
