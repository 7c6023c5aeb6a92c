#!/usr/bin/env python
"""A bottleneck net for pictures of 2018: an abstract model, an own augmentor, a warm-up, top-5."""

import argparse
import os
from abc import abstractmethod

import cv2
import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.dataflow import imgaug
from tensorpack.models import *
from tensorpack.tfutils import argscope, get_model_loader
from tensorpack.tfutils.summary import add_moving_summary
from tensorpack.utils.gpu import get_num_gpu
from tensorpack.utils.stats import RatioCounter

SIDE, KINDS = 32, 8


class ResizedPart(imgaug.ImageAugmentor):
    """A part of the image of a random area and aspect ratio, resized."""

    def __init__(self, crop_area_fraction=0.3, aspect_ratio_low=0.75, target_shape=SIDE):
        super(ResizedPart, self).__init__()
        self._init(locals())

    def _augment(self, img, _):
        h, w = img.shape[:2]
        area = h * w
        for _ in range(10):
            target = self.rng.uniform(self.crop_area_fraction, 1.0) * area
            ratio = self.rng.uniform(self.aspect_ratio_low, 1.0 / self.aspect_ratio_low)
            ww, hh = int(np.sqrt(target * ratio) + 0.5), int(np.sqrt(target / ratio) + 0.5)
            if hh <= h and ww <= w:
                x1 = 0 if w == ww else self.rng.randint(0, w - ww)
                y1 = 0 if h == hh else self.rng.randint(0, h - hh)
                out = img[y1 : y1 + hh, x1 : x1 + ww]
                shape = (self.target_shape, self.target_shape)
                return cv2.resize(out, shape, interpolation=cv2.INTER_CUBIC)
        out = imgaug.ResizeShortestEdge(self.target_shape, cv2.INTER_CUBIC).augment(img)
        return imgaug.CenterCrop(self.target_shape).augment(out)


def fbresnet_augmentor(is_train):
    if is_train:
        return [
            ResizedPart(),
            imgaug.RandomOrderAug([
                imgaug.BrightnessScale((0.8, 1.2), clip=False),
                imgaug.Contrast((0.8, 1.2), clip=False),
                imgaug.Saturation(0.4, rgb=False),
                imgaug.Lighting(
                    0.1,
                    eigval=np.asarray([0.2175, 0.0188, 0.0045][::-1]) * 255.0,
                    eigvec=np.eye(3, dtype="float32")[::-1, ::-1],
                ),
            ]),
        ]  # fmt: skip
    return [
        imgaug.ResizeShortestEdge(SIDE + 4, cv2.INTER_CUBIC),
        imgaug.CenterCrop((SIDE, SIDE)),
    ]


def pictures(count, seed):
    """Files in memory: gratings of eight directions, encoded as JPEG."""
    rng = np.random.RandomState(seed)
    row, column = np.mgrid[:48, :56] / 3.0
    for number in range(count):
        label = number % KINDS
        angle = np.pi * label / KINDS
        wave = np.sin(row * np.sin(angle) + column * np.cos(angle) + rng.uniform(6))
        image = 128 + 90 * wave[..., None] + rng.normal(scale=8, size=(48, 56, 3))
        yield [cv2.imencode(".jpg", image.clip(0, 255).astype("uint8"))[1], label]


def get_imagenet_dataflow(count, is_train, batch_size, augmentors, parallel=2):
    ds = DataFromList(list(pictures(count, int(is_train))), shuffle=is_train)
    aug = imgaug.AugmentorList(augmentors)

    def mapf(dp):
        encoded, cls = dp
        im = cv2.imdecode(encoded, cv2.IMREAD_COLOR)
        return aug.augment(im).clip(0, 255).astype("uint8"), cls

    if is_train:
        ds = MultiThreadMapData(ds, parallel, mapf, buffer_size=16, strict=False)
        return BatchData(ds, batch_size, remainder=False)
    ds = MultiThreadMapData(ds, parallel, mapf, buffer_size=16, strict=True)
    ds = BatchData(ds, batch_size, remainder=True)
    return PrefetchDataZMQ(ds, 1)


class ImageNetModel(ModelDesc):
    weight_decay = 1e-4
    image_dtype = tf.uint8
    data_format = "NHWC"

    def inputs(self):
        return [
            tf.placeholder(self.image_dtype, [None, SIDE, SIDE, 3], "input"),
            tf.placeholder(tf.int32, [None], "label"),
        ]

    def build_graph(self, image, label):
        image = self.image_preprocess(image)
        assert self.data_format in ["NCHW", "NHWC"]
        if self.data_format == "NCHW":
            image = tf.transpose(image, [0, 3, 1, 2])
        logits = self.get_logits(image)
        loss = self.compute_loss_and_error(logits, label)
        wd_loss = regularize_cost(
            ".*/W", tf.contrib.layers.l2_regularizer(self.weight_decay), name="l2_regularize_loss"
        )
        add_moving_summary(loss, wd_loss)
        return tf.add_n([loss, wd_loss], name="cost")

    @abstractmethod
    def get_logits(self, image):
        """Logits of an image in [-1, 1]."""

    def optimizer(self):
        lr = tf.get_variable("learning_rate", initializer=0.02, trainable=False)
        tf.summary.scalar("learning_rate-summary", lr)
        return tf.train.MomentumOptimizer(lr, 0.9, use_nesterov=True)

    def image_preprocess(self, image):
        with tf.name_scope("image_preprocess"):
            image = tf.cast(image, tf.float32) * (1.0 / 255)
            mean = tf.constant([0.485, 0.456, 0.406][::-1], dtype=tf.float32)
            std = tf.constant([0.229, 0.224, 0.225][::-1], dtype=tf.float32)
            return (image - mean) / std

    @staticmethod
    def compute_loss_and_error(logits, label):
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=label)
        loss = tf.reduce_mean(loss, name="xentropy-loss")
        for k in (1, 5):
            with tf.name_scope("prediction_incorrect"):
                x = tf.logical_not(tf.nn.in_top_k(logits, label, k))
            wrong = tf.cast(x, tf.float32, name="wrong-top%d" % k)
            add_moving_summary(tf.reduce_mean(wrong, name="train-error-top%d" % k))
        return loss


def get_bn(zero_init=False):
    if zero_init:
        return lambda x, name=None: BatchNorm("bn", x, gamma_initializer=tf.zeros_initializer())
    return lambda x, name=None: BatchNorm("bn", x)


def shortcut(l, n_out, stride, activation=tf.identity):
    if l.get_shape().as_list()[3] != n_out:
        return Conv2D("convshortcut", l, n_out, 1, strides=stride, activation=activation)
    return l


def bottleneck(l, ch_out, stride):
    before = l
    l = Conv2D("conv1", l, ch_out, 1, activation=BNReLU)
    l = Conv2D("conv2", l, ch_out, 3, strides=stride, activation=BNReLU)
    l = Conv2D("conv3", l, ch_out * 2, 1, activation=get_bn(zero_init=True))
    out = l + shortcut(before, ch_out * 2, stride, activation=get_bn(zero_init=False))
    return tf.nn.relu(out)


class Model(ImageNetModel):
    def __init__(self, blocks=(1, 2)):
        self.blocks = blocks

    def get_logits(self, image):
        with argscope(
            [Conv2D, MaxPooling, GlobalAvgPooling, BatchNorm], data_format=self.data_format
        ):
            with argscope(
                Conv2D,
                use_bias=False,
                kernel_initializer=tf.variance_scaling_initializer(scale=2.0, mode="fan_out"),
            ):
                l = Conv2D("conv0", image, 8, 5, strides=2, activation=BNReLU)
                l = MaxPooling("pool0", l, pool_size=3, strides=2, padding="SAME")
                for number, count in enumerate(self.blocks):
                    with tf.variable_scope("group%d" % number):
                        for i in range(count):
                            with tf.variable_scope("block{}".format(i)):
                                l = bottleneck(l, 8 << number, 2 if number and i == 0 else 1)
            l = GlobalAvgPooling("gap", l)
            init = tf.random_normal_initializer(stddev=0.01)
            return FullyConnected("linear", l, KINDS, kernel_initializer=init)


def get_config(model, args, fake=False):
    nr_tower = max(get_num_gpu(), 1)
    batch = 32 // nr_tower
    if fake:
        data = QueueInput(
            FakeData([[batch, SIDE, SIDE, 3], [batch]], 1000, random=False, dtype="uint8")
        )
        callbacks = []
    else:
        data = QueueInput(get_imagenet_dataflow(640, True, batch, fbresnet_augmentor(True)))
        base = 0.02
        validation = get_imagenet_dataflow(64, False, batch, fbresnet_augmentor(False))
        infs = [ClassificationError("wrong-top%d" % k, "val-error-top%d" % k) for k in (1, 5)]
        callbacks = [
            ModelSaver(),
            EstimatedTimeLeft(),
            ScheduledHyperParamSetter(
                "learning_rate", [(0, base / 2), (1, base)], interp="linear", step_based=False
            ),
            ScheduledHyperParamSetter("learning_rate", [(2, base * 1e-1), (60, base * 1e-2)]),
            InferenceRunner(validation, infs),
        ]
    return AutoResumeTrainConfig(
        always_resume=False,
        model=model,
        data=data,
        callbacks=callbacks,
        steps_per_epoch=20,
        session_init=get_model_loader(args.load) if args.load else None,
        max_epoch=args.epochs,
    )


def eval_on_ILSVRC12(model, sessinit, dataflow):
    pred_config = PredictConfig(
        model=model,
        session_init=sessinit,
        input_names=["input", "label"],
        output_names=["wrong-top1", "wrong-top5"],
    )
    pred = SimpleDatasetPredictor(pred_config, dataflow)
    acc1, acc5 = RatioCounter(), RatioCounter()
    for top1, top5 in pred.get_result():
        batch_size = top1.shape[0]
        acc1.feed(top1.sum(), batch_size)
        acc5.feed(top5.sum(), batch_size)
    print("prediction: top1 error {:.3f}, top5 error {:.3f}".format(acc1.ratio, acc5.ratio))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load", help="load a model for training or evaluation")
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    model = Model()
    if args.predict:
        ds = get_imagenet_dataflow(40, False, 16, fbresnet_augmentor(False))
        eval_on_ILSVRC12(model, get_model_loader(args.load), ds)
    else:
        logger.set_logger_dir(os.path.join("train_log", "imagenet_resnet_2018"), "k")
        gpus = get_num_gpu()
        trainer = SyncMultiGPUTrainerReplicated(gpus) if gpus else SimpleTrainer()
        launch_train_with_config(get_config(model, args), trainer)
