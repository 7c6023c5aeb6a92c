from tensorpack.utils import get_rng


class Dice:
    def __init__(self):
        self.rng = get_rng(self)  # a numpy RandomState; of the seed of the run, if it has one


print(Dice().rng.randint(1, 7))
