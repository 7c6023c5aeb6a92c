from tensorpack.dataflow import FakeData, TestDataSpeed

TestDataSpeed(FakeData([[64, 28, 28]]), size=200).start()  # a progress bar with datapoints/s
