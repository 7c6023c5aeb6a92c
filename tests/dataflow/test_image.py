"""Flows that augment: what is drawn depends on the seed, the pass and the position alone."""

import numpy as np
import pytest

from tensorpack.dataflow import (
    AugmentImageComponent,
    AugmentImageComponents,
    AugmentImageCoordinates,
    DataFromList,
    MultiProcessMapData,
)
from tensorpack.dataflow.imgaug import (
    AugmentationError,
    AugmentorList,
    Flip,
    ImageAugmentor,
    PhotometricAugmentor,
    Rotation,
)
from tensorpack.utils._tracebacks import notes_of
from tensorpack.utils.rng import fix_rng_seed
from tests.contracts.augmentor import picture
from tests.contracts.dataflow import DataFlowContract, assert_same
from tests.dataflow.flows import flow_of
from tests.dataflow.process_flows import FORKED, closing

cv2 = pytest.importorskip("cv2")
pytestmark = pytest.mark.usefixtures("own_streams")


class AddNoise(PhotometricAugmentor):
    """Draws normal and uniform numbers, of each an odd number."""

    def _get_augment_params(self, img):
        return self.rng.randn(), self.rng.randint(10), self.rng.rand(3)

    def _augment(self, img, param):
        return np.array([param[0], param[1], *param[2]])[:, np.newaxis] + img.flat[0]


class WritesInPlace(ImageAugmentor):
    """An augmentor of 2017 that changes its image and its coordinates."""

    def _augment(self, img, param):
        img[:] = 0
        return img

    def _augment_coords(self, coords, param):
        coords[:] = 0
        return coords


class FailsOn(PhotometricAugmentor):
    """Fails on images whose first pixel has some value."""

    def __init__(self, value):
        self.value = value

    def _augment(self, img, param):
        if img[0, 0, 0] == self.value:
            raise LookupError("no such colour")
        return img


def numbered(count=8, shape=(4, 6, 3)):
    """Images of which each has its number in it; read-only."""
    datapoints = [[np.full(shape, i, np.uint8), i] for i in range(count)]
    for img, _ in datapoints:
        img.flags.writeable = False
    return datapoints


def noisy(**options):
    return AugmentImageComponent(flow_of(numbered()), [AddNoise()], **options)


class TestAugmentImageComponent(DataFlowContract):
    length = 8
    deterministic = False  # each pass draws for itself

    def make_flow(self):
        return noisy()


class TestAugmentImageComponents(TestAugmentImageComponent):
    def make_flow(self):
        return AugmentImageComponents(flow_of(numbered()), [AddNoise()], index=[0])


class TestAugmentImageCoordinates(TestAugmentImageComponent):
    def make_flow(self):
        ds = flow_of([[image, np.ones((2, 2))] for image, _ in numbered()])
        return AugmentImageCoordinates(ds, [AddNoise()])


class TestSkipping(DataFlowContract):
    length = 7
    has_len = "about"
    deterministic = False

    def make_flow(self):
        augmentors = [FailsOn(3), AddNoise()]
        return AugmentImageComponent(DataFromList(numbered()), augmentors, catch_exceptions=True)


def seeded(make):
    fix_rng_seed(5)
    flow = make()
    flow.reset_state()
    return flow


def test_draws_depend_on_seed_pass_and_position():
    one, two = (seeded(noisy) for _ in range(2))
    passes = [list(one), list(one)]
    assert_same([list(two), list(two)], passes)
    values = [tuple(img[:, 0] - i) for datapoints in passes for img, i in datapoints]
    assert len(set(np.round(np.ravel(values), 9))) > 50  # no draw comes twice
    first, second = iter(two), iter(two)
    interleaved = list(zip(first, second))
    one_by_one = list(one), list(one)
    assert_same([dp for dp, _ in interleaved], one_by_one[0])
    assert_same([dp for _, dp in interleaved], one_by_one[1])


def test_flows_may_share_augmentors():
    shared = [AddNoise()]

    def make():
        return [AugmentImageComponent(flow_of(numbered()), shared) for _ in range(2)]

    fix_rng_seed(5)
    expected = [list(flow) for flow in make()]
    fix_rng_seed(5)
    assert_same([list(datapoints) for datapoints in zip(*zip(*make()))], expected)


NOISE = AugmentorList([AddNoise()])


def noise_added(datapoint):
    return [NOISE.augment(datapoint[0]), datapoint[1]]


def test_augmentors_in_functions_of_strict_processes():
    results = []
    for num_proc in 1, 3:
        fix_rng_seed(5)
        ds = flow_of(numbered())
        flow = MultiProcessMapData(ds, num_proc, noise_added, strict=True, **FORKED)
        with closing(flow):
            flow.reset_state()
            results.append([list(flow), list(flow)])
    assert_same(results[0], results[1])
    values = [img[0, 0] - i for one_pass in results[0] for img, i in one_pass]
    assert len(set(values)) == 16


def test_the_flow_below_is_never_written_to():
    datapoints = numbered(2)
    for img, _ in datapoints:
        img.flags.writeable = True
    coords = np.ones((3, 2))
    for datapoint in datapoints:
        datapoint.append(coords)
    for img, _, points in AugmentImageCoordinates(flow_of(datapoints), [WritesInPlace()], 0, 2):
        assert not img.any() and not points.any()
    assert coords.all() and datapoints[1][0].all() and len(datapoints[0]) == 3
    list(AugmentImageComponent(flow_of(datapoints), [WritesInPlace()], copy=False))
    assert not datapoints[1][0].any()


@pytest.mark.parametrize("form", [list, tuple, dict])
def test_all_components_get_the_same_transform(form):
    img = picture()
    mask = np.arange(2400).reshape(40, 60)
    coords, boxes = np.array([[1.0, 2.0]]), np.array([[1.0, 2.0, 5.0, 4.0]])
    names = "image", "other", "coords", "box", "mask", "rest"
    values = img, 255 - img, coords, boxes, mask, "rest"
    datapoint = dict(zip(names, values)) if form is dict else form(values)
    keys = names if form is dict else range(6)
    flow = AugmentImageComponents(
        flow_of([datapoint]),
        AugmentorList([Flip(horiz=True, prob=1)]),
        [keys[0], keys[1]],
        [keys[2]],
        box_index=[keys[3]],
        mask_index=[keys[4]],
    )
    (result,) = flow
    assert type(result) is (dict if form is dict else list)
    expected = [img[:, ::-1], 255 - img[:, ::-1], [[59.0, 2.0]], [[55.0, 2.0, 59.0, 4.0]]]
    for key, component in zip(keys, [*expected, mask[:, ::-1], "rest"]):
        np.testing.assert_array_equal(result[key], component)


def test_a_mask_of_another_size_than_the_image_is_refused():
    flow = AugmentImageComponents(
        flow_of([[picture(), np.zeros((20, 60))]]), [Rotation(9)], [0], mask_index=[1]
    )
    with pytest.raises(AugmentationError, match="mask 1.* the height and width of component 0"):
        list(flow)


def test_one_augmentor_and_the_arguments_of_2017():
    img, flip = picture(), Flip(horiz=True, prob=1)
    ((first, second),) = AugmentImageComponents(flow_of([[img, img]]), flip, (0, 1), copy=True)
    np.testing.assert_array_equal([first, second], [img[:, ::-1]] * 2)
    images = [picture(), picture()]
    ((first, second),) = AugmentImageComponents(
        flow_of([images]), [Flip(horiz=True, prob=0)], (0, 1), False
    )
    assert first is images[0] and second is images[1]  # not copied


def test_an_error_names_datapoint_augmentor_shape_and_dtype():
    flow = AugmentImageComponent(flow_of(numbered()), [AddNoise(), FailsOn(5)][1:])
    with pytest.raises(AugmentationError) as caught:
        list(flow)
    assert str(caught.value) == (
        "FailsOn(value=5) failed on an image of shape (4, 6, 3), uint8: no such colour"
    )
    note = "AugmentImageComponent failed on datapoint 5 (counted from 0): [uint8 (4, 6, 3), 5]."
    assert notes_of(caught.value) == [note]


def test_an_error_of_coordinates():
    datapoints = [[picture(), picture((4, 5))]]
    with pytest.raises(ValueError, match=r"Coordinates have the shape \[N, 2\], got \(4, 5\)"):
        list(AugmentImageCoordinates(flow_of(datapoints), [Flip(horiz=True, prob=1)]))


def test_skipped_datapoints_are_counted_and_the_log_is_bounded(capsys):
    datapoints = [[np.zeros((4, 6, 3), np.uint8), i] for i in range(250)]
    datapoints[7][0] = np.ones((4, 6, 3), np.uint8)
    flow = AugmentImageComponent(flow_of(datapoints), [FailsOn(0)], catch_exceptions=True)
    assert [i for _, i in flow] == [7]
    lines = [line for line in capsys.readouterr().out.splitlines() if "skipped datapoint" in line]
    assert len(lines) == 9 + 2
    assert "skipped datapoint 9, 9 in this pass: AugmentationError: FailsOn" in lines[8]
    assert "skipped datapoint 100, 100 in this pass" in lines[9]
    with pytest.raises(IndexError, match="takes component 4, which"):
        list(AugmentImageComponent(flow_of(datapoints), [Flip(horiz=True)], 4, True, True))
