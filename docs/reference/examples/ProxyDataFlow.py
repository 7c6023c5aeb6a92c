from tensorpack.dataflow import DataFromList, ProxyDataFlow


class Twice(ProxyDataFlow):
    def __iter__(self):
        for datapoint in self.ds:
            yield datapoint
            yield datapoint

    def __len__(self):
        return 2 * len(self.ds)


flow = Twice(DataFromList([["a"], ["b"]], shuffle=False))
flow.reset_state()
assert list(flow) == [["a"], ["a"], ["b"], ["b"]]
