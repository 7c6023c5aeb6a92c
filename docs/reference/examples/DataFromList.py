from tensorpack.dataflow import DataFromList

flow = DataFromList([[0, "cat"], [1, "dog"], [2, "fox"]], shuffle=True)
flow.reset_state()
for number, name in flow:  # each pass has an order of its own
    print(number, name)
