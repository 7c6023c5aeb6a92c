from tensorpack.dataflow import FakeData, MultiProcessRunner

if __name__ == "__main__":
    flow = MultiProcessRunner(FakeData([[8, 8]], size=50), num_prefetch=10, num_proc=2)
    flow.reset_state()
    for (image,), _ in zip(flow, range(5)):
        print(image.shape)
