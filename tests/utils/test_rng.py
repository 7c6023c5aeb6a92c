"""Tests of `tensorpack.utils.rng`."""

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorpack.utils import fix_rng_seed, get_rng
from tensorpack.utils.rng import SeedTree, _streams

NAMES = st.one_of(st.integers(0, 3), st.text(max_size=2))
PATHS = st.lists(NAMES, min_size=1, max_size=4)


def node(root, path):
    return root.child(*path) if path else root


def draw():
    return get_rng().randint(0, 2**31, size=4).tolist()


def distinct(draws):
    return len({tuple(values) for values in draws}) == len(draws)


@pytest.fixture(autouse=True)
def random_again():
    """Leaves a stream behind that no test has fixed."""
    yield
    fix_rng_seed(SeedTree().seed)


def test_each_seed_gives_its_own_streams_in_the_same_order():
    streams = []
    for seed in (0, 1, 2**32, 2**64):
        fix_rng_seed(seed)
        first = [draw() for _ in range(3)]
        fix_rng_seed(seed)
        assert [draw() for _ in range(3)] == first
        streams += first
    assert distinct(streams)


def test_streams_differ_without_a_seed_and_for_one_object():
    owner = object()
    assert distinct([get_rng(owner).randint(0, 2**31, size=4) for _ in range(100)])


def test_threads_never_share_a_stream():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            nodes = list(pool.map(lambda _: _streams.branch().next(), range(6000)))
    finally:
        sys.setswitchinterval(interval)
    assert len(set(nodes)) == 6000


FORK_TWICE = """
import multiprocessing
from tensorpack.utils import fix_rng_seed, get_rng

def draw():
    return get_rng().randint(0, 2**31)

def work(connection):
    connection.send(draw())

fix_rng_seed(7)
context = multiprocessing.get_context("fork")
for _ in range(2):
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=work, args=(theirs,))
    child.start()
    print(ours.recv(), draw())
    child.join()
"""


def test_forked_processes_have_streams_of_their_own_that_repeat_in_the_next_run(run_python):
    first, second = run_python(FORK_TWICE), run_python(FORK_TWICE)
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    assert len(set(first.stdout.split())) == 4


def test_a_seed_is_a_non_negative_whole_number_of_any_kind():
    for seed in (-1, -(2**70), 1.5, None):
        with pytest.raises((TypeError, ValueError), match="fix_rng_seed: seed must be a .*number"):
            fix_rng_seed(seed)
    fix_rng_seed("7")
    first = draw()
    fix_rng_seed(7.0)
    assert draw() == first
    with pytest.raises(ValueError, match="non-negative"):
        SeedTree(-1)
    assert SeedTree(np.int64(3)) == SeedTree(3)


def test_streams_are_the_same_on_every_platform():
    numbers = SeedTree(42).child("player", 3).random_state().randint(0, 2**31, size=3)
    assert numbers.tolist() == [1471942818, 714346379, 2043158773]


def test_a_node_is_a_value():
    root = SeedTree(1)
    expected = root.child("a").integer()
    root.child("b").random_state().rand(100)
    assert root.child("a").integer() == expected
    assert pickle.loads(pickle.dumps(root)).child("a").integer() == expected
    assert root.child("a").child(2) == root.child("a", 2)


@settings(max_examples=15)
@given(st.lists(st.one_of(PATHS, st.just([])), unique_by=repr, min_size=2, max_size=6))
def test_different_paths_give_different_streams(paths):
    seeds = [tuple(node(SeedTree(5), path).sequence().generate_state(4)) for path in paths]
    assert len(set(seeds)) == len(paths)


def test_a_name_is_text_or_an_integer_of_32_bits():
    for names in (), (-1,), (2**32,):
        with pytest.raises(ValueError):
            SeedTree(0).child(*names)
    with pytest.raises(TypeError):
        SeedTree(0).child(1.5)
