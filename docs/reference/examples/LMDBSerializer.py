from tensorpack.dataflow import DataFromList, LMDBSerializer

LMDBSerializer.save(DataFromList([[number, "text"] for number in range(10)]), "numbers.lmdb")
flow = LMDBSerializer.load("numbers.lmdb", shuffle=True)
flow.reset_state()
assert len(list(flow)) == 10
