"""Scores are taken once, in order, whoever adds them."""

import threading

from scores import Scores


def test_scores_are_taken_once_and_in_order():
    scores = Scores()
    scores.add([1.0, 2.0])
    scores.add([3.0])
    assert scores.take() == [1.0, 2.0, 3.0]
    assert scores.take() == []


def test_looking_at_what_waits_takes_nothing():
    scores = Scores()
    scores.add([1.0])
    scores.waiting().append(5.0)
    assert scores.waiting() == [1.0]
    assert scores.take() == [1.0]
    assert scores.waiting() == []


def test_none_is_lost_between_threads():
    scores = Scores()
    threads = [
        threading.Thread(target=lambda: [scores.add([1.0]) for _ in range(2000)]) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    taken = 0.0
    while any(thread.is_alive() for thread in threads):
        taken += sum(scores.take())
    for thread in threads:
        thread.join()
    assert taken + sum(scores.take()) == 6000
