"""What `iterate_share` of each flow leaves to others, and what it says before."""

import pytest

from tensorpack.dataflow import BatchData, DataFlow, MapData, MultiThreadMapData, ProxyDataFlow
from tensorpack.dataflow._processes.worker_loop import DatapointSeeds
from tensorpack.dataflow.base import Dropped
from tensorpack.utils._tracebacks import notes_of
from tensorpack.utils.rng import fix_rng_seed
from tests.contracts.dataflow import assert_same
from tests.dataflow import process_functions as functions
from tests.dataflow.process_functions import Plain, Unsized, numbers

pytestmark = pytest.mark.usefixtures("own_streams")


class TestShares:
    """What `iterate_share` of each flow leaves to others, and what it says before."""

    @pytest.mark.parametrize(
        "make",
        [
            lambda: numbers(10, shuffle=True),
            lambda: MapData(numbers(10, shuffle=True), functions.not_of_three),
            lambda: Unsized(MapData(numbers(10), functions.drawn)),
            lambda: BatchData(numbers(10), 3),
            lambda: BatchData(BatchData(MapData(Plain(12), functions.drawn), 2), 2, True),
            lambda: Plain(4),
            lambda: MapData(MapData(Plain(7), functions.drawn), functions.odd),
            lambda: MultiThreadMapData(numbers(11, shuffle=True), 3, functions.late),
            lambda: MultiThreadMapData(
                MultiThreadMapData(Plain(9), 2, functions.late), 2, functions.tenfold
            ),
        ],
    )
    @pytest.mark.parametrize("first, step", [(0, 1), (1, 2), (2, 5), (30, 1)])
    def test_it_is_a_part_of_the_whole(self, make, first, step):
        whole, part = (list(self.share(make(), *each)) for each in ((0, 1), (first, step)))
        assert_same(
            [(at, dp) for at, dp in part if dp is not None],
            [
                (at, dp)
                for at, dp in whole
                if dp is not None and at >= first and (at - first) % step == 0
            ],
        )

    @staticmethod
    def share(flow, first, step):
        fix_rng_seed(1)
        flow.reset_state()
        return flow.iterate_share(first, step, DatapointSeeds(5))

    def test_a_list_makes_only_its_part(self):
        told = []
        assert list(numbers(10).iterate_share(1, 4, told.append)) == [(1, [1]), (5, [5]), (9, [9])]
        assert told == [1, 5, 9]

    def test_the_others_make_all(self):
        told = []
        assert [at for at, _ in Plain(6).iterate_share(1, 4, told.append)] == [1, 5]
        assert told == list(range(7))

    @pytest.mark.parametrize("make", [numbers, Plain])
    def test_blocks(self, make):
        share = make(12).iterate_share(2, 5, lambda at: None, 3)
        assert [at for at, _ in share] == [2, 3, 4, 7, 8, 9]
        everything = make(4).iterate_share(0, 1, lambda at: None, None)
        assert [at for at, _ in everything] == [0, 1, 2, 3]

    def test_what_a_class_makes_of_a_whole_pass_is_shared(self):
        class Doubled(ProxyDataFlow):
            def _transform(self, datapoints):
                return ([2 * number] for (number,) in datapoints)

        share = Doubled(numbers(5)).iterate_share(1, 2, lambda at: None)
        assert list(share) == [(1, [2]), (3, [6])]

    def test_a_batch_makes_only_its_datapoints(self):
        told = []
        flow = BatchData(numbers(13), 3, remainder=True)
        shares = [(at, dp[0].tolist()) for at, dp in flow.iterate_share(1, 3, told.append)]
        assert shares == [(1, [3, 4, 5]), (4, [12])]
        assert told == [3, 4, 5, 12]

    def test_threads_make_only_their_part_and_are_at_the_end_of_the_pass(self):
        flow = MultiThreadMapData(numbers(20), 3, functions.late, strict=True)
        told = []
        share = flow.iterate_share(0, 3, told.append)
        assert list(share)[:3] == [(0, None), (3, [3]), (6, [6])] and told == [*range(0, 20, 3)]
        state = flow.state_dict()
        assert len(list(flow)) == 16
        flow.load_state_dict(state)
        assert list(flow) == []

    def test_an_error_in_a_thread_names_the_position_in_the_pass(self):
        flow = MultiThreadMapData(numbers(20), 3, functions.At(13, functions.fail))
        with pytest.raises(LookupError) as caught:
            list(flow.iterate_share(1, 4, lambda at: None))
        assert "failed on datapoint 13 " in notes_of(caught.value)[0]

    def test_a_batch_that_depends_on_what_others_drop(self):
        flow = BatchData(MapData(numbers(12), lambda dp: None if dp[0] == 4 else dp), 3)
        assert [at for at, _ in flow.iterate_share(0, 2, lambda at: None)] == [0, 2]
        with pytest.raises(Dropped):
            list(flow.iterate_share(1, 2, lambda at: None))
        whole = flow.iterate_share(0, 1, lambda at: None, None)
        assert [dp[0].tolist() for _, dp in whole] == [[0, 1, 2], [3, 5, 6], [7, 8, 9]]

    def test_a_class_that_defines_iter_alone_gets_that_of_all_flows(self):
        class Backwards(MapData):
            def __iter__(self):
                return iter(list(super().__iter__())[::-1])

        flow = Backwards(numbers(4), functions.tenfold)
        assert list(flow.iterate_share(0, 3, lambda at: None)) == [(0, [30]), (3, [0])]
        assert Backwards.iterate_share is DataFlow.iterate_share

    def test_a_list_is_over_behind_its_share(self):
        flow = numbers(9, shuffle=True)
        flow.reset_state()
        list(flow.iterate_share(3, 4, lambda at: None))
        twin = numbers(9, shuffle=True)
        twin.load_state_dict(flow.state_dict())
        assert list(twin) == []
        assert list(twin) == list(flow)
