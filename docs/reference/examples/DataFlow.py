from tensorpack.dataflow import BatchData, DataFlow


class Squares(DataFlow):
    def __iter__(self):
        for number in range(10):
            yield [number, number**2]

    def __len__(self):
        return 10


flow = BatchData(Squares(), 5)
flow.reset_state()
for numbers, squares in flow:
    print(numbers, squares)
