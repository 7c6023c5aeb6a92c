import numpy as np
import pytest

from tensorpack.callbacks import DumpParamAsImage, DumpTensorAsImage, MonitorBase
from tensorpack.compat import tfv1 as tf
from tests.callbacks.driver import MiniTrainer, log_directory
from tests.contracts.callback import contract_of

FRAMES = np.arange(2 * 3 * 4 * 3).reshape([2, 3, 4, 3]) / 72


TestDumpTensorAsImage = contract_of(
    lambda: DumpTensorAsImage("weight", map_func=lambda weight: [[weight]])
)


@pytest.fixture
def directory(tmp_path):
    with log_directory(tmp_path):
        yield tmp_path


def train(callback):
    """Two epochs with a variable of two images; returns what the monitors get of them."""
    tf.get_variable("layer/frames", initializer=tf.constant(FRAMES, tf.float32))
    monitor, tape = MonitorBase(), []
    monitor.process_image = lambda name, val: tape.append((name, val))
    MiniTrainer([callback], [monitor], max_epoch=2).train()
    return tape


def decoded(path):
    with tf.Graph().as_default(), tf.Session() as sess:
        return sess.run(tf.image.decode_png(path.read_bytes()))


def test_each_image_of_each_epoch_is_a_file(directory):
    tape = train(DumpTensorAsImage("layer/frames"))
    assert sorted(path.name for path in directory.iterdir()) == [
        "layer-frames-ep001-1.png",
        "layer-frames-ep001.png",
        "layer-frames-ep002-1.png",
        "layer-frames-ep002.png",
    ]
    expected = (FRAMES.astype(np.float32) * 255).astype(np.uint8)
    np.testing.assert_array_equal(decoded(directory / "layer-frames-ep002-1.png"), expected[1])
    assert [name for name, _ in tape] == ["layer/frames"] * 2
    np.testing.assert_array_equal(tape[0][1], expected)


@pytest.mark.parametrize("function", [lambda frames: frames[0, :, :, 0], lambda frames: frames[:1]])
def test_a_function_makes_the_images(directory, function):
    train(DumpParamAsImage("layer/frames:0", "first", function, scale=72))
    assert sorted(path.name for path in directory.iterdir()) == [
        "first-ep001.png",
        "first-ep002.png",
    ]
    image = decoded(directory / "first-ep001.png")
    np.testing.assert_allclose(image[:, :, 0], FRAMES[0, :, :, 0] * 72, atol=1)


def test_images_of_bytes_are_clipped(directory):
    tape = train(DumpTensorAsImage("layer/frames", "bytes", lambda x: np.full([2, 2], 2, np.uint8)))
    assert (tape[0][1] == 255).all()


def test_what_cannot_be_an_image_is_refused(directory):
    with pytest.raises(ValueError, match=r"Image 'flat' must have shape .* got \[72\]"):
        train(DumpTensorAsImage("layer/frames", "flat", np.ravel))
