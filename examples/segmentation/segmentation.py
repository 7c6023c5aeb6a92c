#!/usr/bin/env python
"""Trains a small U-Net to find shapes in noisy images: a class for each pixel.

    python segmentation.py
    python segmentation.py --predict photo.png other.png --load train_log/segmentation

The images are drawn by the program; for data of your own replace `draw`. Images and masks are
rotated and mirrored together; pixels from beyond the edge do not count in the cost. Each epoch
draws images, masks and predictions in `shapes-NNN.png`.

Reference: Ronneberger et al., "U-Net", arXiv:1505.04597; here smaller, and padded.
"""

import argparse
from typing import Any, Dict, List, Optional, Sequence

import cv2
import numpy as np

import tensorpack as tp
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import imgaug
from tensorpack.utils.viz import stack_patches

CLASSES = ["background", "disc", "rectangle", "triangle"]
COLOURS = np.array([[40, 40, 40], [230, 80, 80], [80, 200, 80], [60, 160, 230]], np.uint8)  # RGB
IGNORE = 255  # the label of pixels that have none
SIZE = 48  # pixels


class Model(tp.ModelDesc):
    """Tells the class of each pixel.

    Tensors by name: `prediction`, int32 `[B, SIZE, SIZE]`; `confusion`, int32 `[true, predicted]`,
    numbers of pixels; `cost`, the mean cross-entropy of the pixels that have a label.
    """

    def inputs(self) -> "List[tf.TensorSpec]":
        return [
            tf.TensorSpec([None, SIZE, SIZE, 3], tf.uint8, "image"),
            tf.TensorSpec([None, SIZE, SIZE], tf.uint8, "mask"),
        ]

    def build_graph(self, image: "tf.Tensor", mask: "tf.Tensor") -> "tf.Tensor":
        logits = self._network(tf.cast(image, tf.float32) / 127.5 - 1)
        prediction = tf.argmax(logits, 3, output_type=tf.int32, name="prediction")
        labelled = tf.not_equal(mask, IGNORE)
        label = tf.boolean_mask(tf.cast(mask, tf.int32), labelled)
        predicted = tf.boolean_mask(prediction, labelled)
        pairs = tf.math.confusion_matrix(label, predicted, num_classes=len(CLASSES))
        tf.identity(pairs, name="confusion")
        cost = tf.losses.sparse_softmax_cross_entropy(label, tf.boolean_mask(logits, labelled))
        tp.add_moving_summary(tf.identity(cost, name="cost"))
        return cost

    def _network(self, x: "tf.Tensor") -> "tf.Tensor":
        """Returns the logits, `[B, SIZE, SIZE, classes]`."""
        with tp.argscope(tp.Conv2D, kernel_size=3, activation=tp.BNReLU):
            whole = tp.Conv2D("down0", x, 16)
            half = tp.Conv2D("down1", tp.MaxPooling("pool0", whole, 2), 32)
            up = tp.MaxPooling("pool1", half, 2)
            for i in (1, 2, 4):  # each sees twice as far
                up = tp.Conv2D(f"middle{i}", up, 64, dilation_rate=i)
            up = tp.Conv2DTranspose("up1", up, 32, 2, strides=2)
            up = tp.Conv2D("merge1", tf.concat([half, up], 3), 32)
            up = tp.Conv2DTranspose("up0", up, 16, 2, strides=2)
            up = tp.Conv2D("merge0", tf.concat([whole, up], 3), 16)
        return tp.Conv2D("logits", up, len(CLASSES), 1)

    def optimizer(self) -> "tf.train.Optimizer":
        rate = tf.train.exponential_decay(4e-3, tp.get_global_step_var(), 300, 0.5)
        return tf.train.AdamOptimizer(rate)


class MeanIoU(tp.Inferencer):
    """Logs the intersection over union of all pixels of a class, and the mean over the classes."""

    def _before_inference(self) -> None:
        self._confusion = np.zeros([len(CLASSES), len(CLASSES)], np.int64)

    def _get_fetches(self) -> List[str]:
        return ["confusion"]

    def _on_fetches(self, results: List[Any]) -> None:
        self._confusion += results[0]

    def _after_inference(self) -> Dict[str, float]:
        both = np.diag(self._confusion)
        either = self._confusion.sum(axis=0) + self._confusion.sum(axis=1) - both
        iou = both / np.maximum(either, 1)
        names = [f"validation_iou/{name}" for name in CLASSES]
        return {**dict(zip(names, iou)), "validation_mean_iou": iou.mean()}


class DrawMasks(tp.Callback):
    """Writes images, masks and predictions to the log directory each epoch."""

    def __init__(self, examples: List[List[np.ndarray]]) -> None:
        self._images, self._masks = (np.array(each) for each in zip(*examples))

    def _setup_graph(self) -> None:
        self._predict = self.trainer.get_predictor(["image"], ["prediction"])

    def _trigger(self) -> None:
        path = f"{tp.logger.get_logger_dir()}/shapes-{self.epoch_num:03d}.png"
        write_picture(path, self._images, self._masks, self._predict(self._images)[0])


def write_picture(path: str, images: Sequence[np.ndarray], *masks: Sequence[np.ndarray]) -> None:
    """Writes a row of images, uint8 `[H, W, 3]` RGB, and below each its masks in colours."""
    rows = [images, *([COLOURS[mask] for mask in each] for each in masks)]
    patches = [cv2.resize(each, None, fx=2, fy=2, interpolation=0) for row in rows for each in row]
    if not cv2.imwrite(path, stack_patches(patches, len(rows), len(images), 4)[:, :, ::-1]):
        raise OSError(f"Cannot write {path}. Check the free space and the permissions.")


def draw(rng: np.random.RandomState) -> List[np.ndarray]:
    """Returns a noisy image, uint8 `[SIZE, SIZE, 3]` RGB, and its mask, uint8 `[SIZE, SIZE]`."""
    image = np.full([SIZE, SIZE, 3], rng.randint(0, 100, 3), np.uint8)
    mask = np.zeros([SIZE, SIZE], np.uint8)
    for label in rng.randint(1, len(CLASSES), rng.randint(1, 4)).tolist():
        x, y = rng.randint(6, SIZE - 6, 2).tolist()
        a, b = rng.randint(6, 13, 2).tolist()
        outline = [[x - a, y - b], [x + a, y - b], [x + a, y + b], [x - a, y + b]]
        if label == 3:
            outline[:2] = [[x + rng.randint(-a, a + 1), y - b]]
        for canvas, value in [(image, rng.randint(130, 256, 3).tolist()), (mask, label)]:
            if label == 1:
                cv2.circle(canvas, (x, y), a, value, -1)
            else:
                cv2.fillPoly(canvas, [np.int32(outline)], value)
    return [np.uint8(np.clip(image + rng.normal(0, 15, image.shape), 0, 255)), mask]


def examples(count: int, seed: int) -> List[List[np.ndarray]]:
    """Returns what is drawn with a seed."""
    rng = np.random.RandomState(seed)
    return [draw(rng) for _ in range(count)]


def augmented(flow: tp.DataFlow) -> tp.DataFlow:
    """Returns the flow with each image changed at random, and its mask moved along."""
    rotation = imgaug.Rotation(30, border=cv2.BORDER_CONSTANT)
    augmentors = [imgaug.Flip(horiz=True), rotation, imgaug.Brightness(30)]
    # What comes from beyond the edge is 0 in a mask, so the classes are counted from 1 on the way.
    flow = tp.MapDataComponent(flow, lambda mask: mask + 1, 1)
    flow = tp.AugmentImageComponents(flow, augmentors, index=[0], mask_index=[1])
    return tp.MapDataComponent(flow, lambda mask: mask - 1, 1)  # in uint8, 0 - 1 is IGNORE


def train(args: argparse.Namespace) -> None:
    """Trains until the last epoch, and keeps the model with the highest mean IoU."""
    drawn, test = tp.DataFromList(examples(2000, seed=0)), examples(200, seed=1)
    held_out = tp.BatchData(tp.DataFromList(test, shuffle=False), 50)
    config = tp.TrainConfig(
        model=Model(),
        data=tp.QueueInput(tp.BatchData(augmented(drawn), 16)),
        callbacks=[
            tp.ModelSaver(),
            tp.InferenceRunner(held_out, [tp.ScalarStats("cost"), MeanIoU()]),
            tp.MaxSaver("validation_mean_iou"),
            DrawMasks(test[:8]),
        ],
        steps_per_epoch=args.steps_per_epoch,
        max_epoch=args.max_epoch,
        resume=tp.prepare_log_dir(args.logdir, args.resume),
    )
    tp.launch_train_with_config(config, tp.SimpleTrainer())


def predict(args: argparse.Namespace) -> None:
    """Draws images and what is predicted: red discs, green rectangles, blue triangles."""
    images = [image for (image,) in tp.ImageFromFile(args.predict, resize=(SIZE, SIZE))]
    config = tp.PredictConfig(
        model=Model(),
        session_init=tp.SmartInit(args.load),
        input_names=["image"],
        output_names=["prediction"],
    )
    with tp.OfflinePredictor(config) as predictor:
        write_picture(args.out, images, predictor(np.array(images))[0])


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--predict", nargs="+", metavar="IMAGE", help="find shapes in these with --load's model")
    add("--load", metavar="MODEL", help="a checkpoint or log directory to take the weights from")
    add("--out", default="masks.png", help="where --predict draws them (default: masks.png)")
    add("--steps-per-epoch", type=int, default=100, help="default: 100")
    add("--max-epoch", type=int, default=10, help="the last epoch (default: 10)")
    add("--logdir", default="train_log/segmentation", help="default: train_log/segmentation")
    add("--resume", default="never", choices=["never", "auto", "must"], help="default: never")
    args = parser.parse_args(argv)
    if bool(args.predict) != bool(args.load):
        parser.error("--predict IMAGE and --load MODEL go together")
    (predict if args.predict else train)(args)


if __name__ == "__main__":
    main()
