from tensorpack.utils import StatCounter

scores = StatCounter()
for score in [3, 1, 2]:
    scores.feed(score)
assert scores.average == 2 and scores.max == 3
