"""Segmentation of 2019: shifted images and masks, and an inferencer of one's own for the IoU."""

import argparse

import cv2
import numpy as np

from tensorpack import *
from tensorpack.callbacks import Inferencer
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import BatchData, MapData, RNGDataFlow, imgaug
from tensorpack.dataflow.imgaug.transform import WarpAffineTransform
from tensorpack.tfutils.summary import add_moving_summary

SIZE = 20


class MeanIoU(Inferencer):
    def __init__(self, prediction, label):
        self.names = [prediction, label]

    def _get_fetches(self):
        return self.names

    def _before_inference(self):
        self.both = self.either = 0

    def _on_fetches(self, results):
        found, label = (np.asarray(each) > 0 for each in results)
        self.both += np.sum(found & label)
        self.either += np.sum(found | label)

    def _after_inference(self):
        return {"mIoU": self.both / max(1.0, float(self.either))}


class Blobs(RNGDataFlow):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __iter__(self):
        for _ in range(self.count):
            image = self.rng.uniform(0, 90, size=(SIZE, SIZE, 1)).astype("float32")
            mask = np.zeros((SIZE, SIZE), np.uint8)
            at = tuple(int(each) for each in self.rng.randint(5, SIZE - 5, size=2))
            cv2.circle(mask, at, 4, 1, -1)
            yield [image + 150 * mask[..., None], mask]


def get_data(count, is_train):
    shift = imgaug.Shift(0.2, 0.2, border=cv2.BORDER_CONSTANT, border_value=0)
    augmentors = imgaug.AugmentorList([shift, imgaug.Flip(vert=True)])

    def augment(dp):
        image, tfm = augmentors.augment_return_params(dp[0])
        moved = [each for each in tfm.tfms if isinstance(each, WarpAffineTransform)]
        assert moved[0].borderMode == cv2.BORDER_CONSTANT and moved[0].dsize == (SIZE, SIZE)
        return [image.reshape(SIZE, SIZE, 1), tfm.apply_segmentation(dp[1])]

    ds = Blobs(count)
    return BatchData(MapData(ds, augment) if is_train else ds, 16)


class Model(ModelDesc):
    def inputs(self):
        return [
            tf.TensorSpec([None, SIZE, SIZE, 1], tf.float32, "image"),
            tf.TensorSpec([None, SIZE, SIZE], tf.int32, "mask"),
        ]

    def build_graph(self, image, mask):
        x = image / 128.0 - 1
        with argscope([Conv2D, Conv2DTranspose], activation=BNReLU, kernel_size=3):
            down = Conv2D("conv0", x, 8)
            low = Conv2D("conv1", MaxPooling("pool", down, 2), 12)
            up = Conv2DTranspose("up", low, 8, strides=2)
        logits = Conv2D("out", tf.concat([up, down], 3), 2, 1)
        tf.argmax(logits, 3, name="found")
        cost = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=mask)
        cost = tf.reduce_mean(cost, name="cost")
        add_moving_summary(cost)
        return cost

    def optimizer(self):
        return tf.train.AdamOptimizer(0.01)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load")
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        config = PredictConfig(
            model=Model(),
            session_init=SmartInit(args.load),
            input_names=["image"],
            output_names=["found"],
        )
        print("prediction:", OfflinePredictor(config)(np.ones((1, SIZE, SIZE, 1)) * 30)[0].mean())
    else:
        logger.auto_set_dir()
        config = TrainConfig(
            model=Model(),
            dataflow=get_data(160, True),
            callbacks=[
                ModelSaver(),
                InferenceRunner(
                    get_data(32, False), [MeanIoU("found", "mask"), ScalarStats("cost")]
                ),
            ],
            session_init=SmartInit(args.load),
            max_epoch=args.epochs,
        )
        launch_train_with_config(config, SimpleTrainer())
