from tensorpack.dataflow import RNGDataFlow


class Noise(RNGDataFlow):
    def __iter__(self):
        while True:
            yield [self.rng.normal(size=3)]  # another stream in each worker process


flow = Noise()
flow.reset_state()
print(next(iter(flow)))
