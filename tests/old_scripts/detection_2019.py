"""Detection of 2019: proposals, cropped regions, an evaluation by a predictor on a flow."""

import argparse

import cv2
import numpy as np
import tqdm

from tensorpack import *
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList, MapData
from tensorpack.tfutils import get_model_loader
from tensorpack.tfutils.common import get_tf_version_tuple
from tensorpack.tfutils.summary import add_moving_summary
from tensorpack.utils.utils import get_tqdm_kwargs

SIZE, CELLS = 32, 4
SIDE = SIZE // CELLS


def make_images(count, seed):
    rng = np.random.RandomState(seed)
    for _ in range(count):
        image = rng.uniform(0, 60, size=(SIZE, SIZE, 3)).astype("float32")
        x, y = (int(each) for each in rng.randint(2, SIZE - 12, size=2))
        cv2.rectangle(image, (x, y), (x + 9, y + 9), (200, 220, 240), -1)
        yield [image, np.array([[x, y, x + 10, y + 10]], "float32")]


def get_train_flow(count):
    def with_labels(dp):
        image, boxes = dp
        center = ((boxes[:, :2] + boxes[:, 2:]) / 2 / SIDE).astype("int32")
        labels = np.zeros((CELLS, CELLS), "int32")
        labels[center[:, 1], center[:, 0]] = 1
        return [image, boxes, labels]

    return RepeatedData(MapData(DataFromList(list(make_images(count, 0))), with_labels), -1)


def box_loss(found, wanted):
    return tf.reduce_sum(tf.abs(found - wanted)) / tf.maximum(1.0, tf.to_float(tf.shape(wanted)[0]))


class Detector(ModelDesc):
    def inputs(self):
        return [
            tf.TensorSpec((SIZE, SIZE, 3), tf.float32, "image"),
            tf.TensorSpec((None, 4), tf.float32, "gt_boxes"),
            tf.TensorSpec((CELLS, CELLS), tf.int32, "cell_labels"),
        ]

    def build_graph(self, image, gt_boxes, cell_labels):
        x = tf.expand_dims(image / 128.0 - 1, 0)
        with argscope(Conv2D, activation=tf.nn.relu, kernel_size=3, strides=2):
            for number in range(3):
                x = Conv2D("conv%d" % number, x, 16)
        score = tf.squeeze(Conv2D("score", x, 1, 1), [0, 3])
        self.scores = tf.sigmoid(score, name="scores")
        cells = tf.where(self.scores > 0.5)
        corners = tf.to_float(tf.reverse(cells, [1])) * SIDE
        found = tf.concat([corners, corners + SIDE], 1)
        regions = gt_boxes if self.training else found
        roi = tf.image.crop_and_resize(
            x,
            tf.gather(regions, [1, 0, 3, 2], axis=1) / SIZE,
            tf.zeros([tf.shape(regions)[0]], tf.int32),
            [2, 2],
        )
        offsets = FullyConnected("offsets", tf.reshape(roi, [-1, 64]), 4)
        tf.add(regions, offsets, name="boxes")
        if not self.training:
            return None
        loss = tf.nn.sigmoid_cross_entropy_with_logits(
            logits=score, labels=tf.to_float(cell_labels)
        )
        cell_loss = tf.reduce_mean(loss, name="cell_loss")
        region_loss = tf.multiply(0.01, box_loss(offsets, tf.zeros_like(gt_boxes)), name="box_loss")
        total = tf.add_n([cell_loss, region_loss], name="total_cost")
        add_moving_summary(cell_loss, region_loss, total)
        return total

    def optimizer(self):
        return tf.train.MomentumOptimizer(0.02, 0.9)


class Evaluate(Callback):
    def _setup_graph(self):
        self.predictor = self.trainer.get_predictor(["image"], ["boxes", "scores"])

    def _trigger_epoch(self):
        hits, count = 0, 0
        for image, truth in tqdm.tqdm(list(make_images(6, 1)), **get_tqdm_kwargs()):
            boxes, scores = self.predictor(image)
            center = (truth[0, :2] + truth[0, 2:]) / 2
            hits += any((box[:2] <= center).all() and (center <= box[2:]).all() for box in boxes)
            count += len(boxes)
        self.trainer.monitors.put_scalar("recall", hits / 6.0)
        self.trainer.monitors.put_scalar("boxes", count)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load")
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    assert get_tf_version_tuple() >= (1, 6), "needs a later TensorFlow"
    if args.predict:
        predictor = OfflinePredictor(
            PredictConfig(
                model=Detector(),
                session_init=get_model_loader(args.load),
                input_names=["image"],
                output_names=["boxes", "scores"],
            )
        )
        boxes, scores = predictor(np.zeros((SIZE, SIZE, 3), "float32"))
        print("prediction:", boxes.shape, scores.max())
    else:
        logger.auto_set_dir()
        config = TrainConfig(
            model=Detector(),
            data=QueueInput(get_train_flow(40)),
            callbacks=[
                PeriodicCallback(ModelSaver(max_to_keep=10), every_k_epochs=1),
                ProgressBar(["total_cost"]),
                Evaluate(),
                EstimatedTimeLeft(median=True),
                SessionRunTimeout(60000),
            ],
            steps_per_epoch=50,
            session_init=get_model_loader(args.load) if args.load else None,
            max_epoch=args.epochs,
        )
        launch_train_with_config(config, SimpleTrainer())
