"""A GAN of 2018 on several devices: towers, and gradients averaged for each half of the weights."""

import argparse

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.graph_builder import DataParallelBuilder, LeastLoadedDeviceSetter
from tensorpack.tfutils import get_default_sess_config
from tensorpack.tfutils.summary import add_moving_summary
from tensorpack.tfutils.tower import TowerFuncWrapper
from tensorpack.utils.gpu import get_nr_gpu

BATCH, STEP = 32, 16


class Model(ModelDescBase):
    """Waves of 16 values."""

    def inputs(self):
        return [tf.placeholder(tf.float32, [None, STEP], name="wave")]

    def build_graph(self, wave):
        z = tf.random_normal([tf.shape(wave)[0], 3], name="z_train")
        z = tf.placeholder_with_default(z, [None, 3], name="z")
        with argscope(FullyConnected, activation=tf.nn.leaky_relu), argscope(
            BatchNorm, momentum=0.8
        ):
            with tf.variable_scope("gen"):
                x = FullyConnected("fc1", z, 32)
                x = BatchNorm("bn", x, momentum=0.8)
                fake = FullyConnected("fc2", x, STEP, activation=tf.tanh)
            with tf.variable_scope("dis"):
                both = tf.concat([wave, fake], 0)
                x = FullyConnected("fc1", both, 32)
                x = LayerNorm("ln", tf.reshape(x, [-1, 1, 1, 32]))
                x = FullyConnected("fc2", Dropout(x, keep_prob=0.9), 1, activation=tf.identity)
                real_score, fake_score = tf.split(x, 2)
        tf.identity(fake, "made")
        margin = tf.reduce_mean(tf.nn.relu(1 - real_score) + tf.nn.relu(1 + fake_score))
        decay = regularize_cost("dis/fc./W", tf.contrib.layers.l2_regularizer(1e-4))
        self.costs = {
            "dis": tf.add(margin, decay, name="dis_cost"),
            "gen": tf.negative(tf.reduce_mean(fake_score), name="gen_cost"),
        }
        add_moving_summary(*self.costs.values())

    def optimizer_of(self, part):
        lr = {"dis": 4e-3, "gen": 1e-3}[part]
        lr = tf.get_variable(part + "_lr", initializer=lr, trainable=False)
        return tf.train.AdamOptimizer(lr, beta1=0.0, name="Adam_" + part)


class MultiTowerTrainer(TowerTrainer):
    def __init__(self, towers, input, model):
        super(MultiTowerTrainer, self).__init__()
        signature = model.get_inputs_desc()
        self.register_callback(input.setup(signature))
        self.tower_func = TowerFuncWrapper(model.build_graph, signature)
        nr_gpu = get_nr_gpu()
        if nr_gpu:
            raw = ["/gpu:%d" % (t % nr_gpu) for t in towers]
            devices = [LeastLoadedDeviceSetter(d, raw) for d in raw]
        else:
            devices = ["/cpu:0"] * len(towers)
        parts = {part: model.optimizer_of(part) for part in ("dis", "gen")}

        def one_tower():
            self.tower_func(*input.get_input_tensors())
            return [self.of_part(parts[part], part, model.costs[part]) for part in sorted(parts)]

        every = DataParallelBuilder.build_on_towers(towers, one_tower, devices)
        updates = []
        for part, grads in zip(sorted(parts), zip(*every)):
            with tf.name_scope("average_" + part):
                mean = [
                    (tf.add_n([g for g, _ in each]) / len(towers), each[0][1])
                    for each in zip(*grads)
                ]
            updates.append(parts[part].apply_gradients(mean, name="update_" + part))
        self.train_op = tf.group(*updates, name="train_op")

    @staticmethod
    def of_part(opt, part, cost):
        chosen = [v for v in tf.trainable_variables() if v.name.startswith(part + "/")]
        grads = opt.compute_gradients(cost, var_list=chosen, colocate_gradients_with_ops=True)
        return FilterNoneGrad().process(grads)


class Waves(RNGDataFlow):
    def __len__(self):
        return 1000

    def __iter__(self):
        for _ in range(len(self)):
            shift = self.rng.uniform(0, 6)
            yield [np.sin(shift + np.arange(STEP) * 0.5).astype("float32")]


def predict(path):
    config = PredictConfig(
        model=Model(),
        session_init=get_model_loader(path),
        input_names=["z"],
        output_names=["made"],
    )
    wave = OfflinePredictor(config)(np.zeros((1, 3)))[0]
    print("prediction:", wave[0, :4])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--load")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        predict(args.load)
    else:
        logger.auto_set_dir()
        trainer = MultiTowerTrainer([0, 1], QueueInput(BatchData(Waves(), BATCH)), Model())
        trainer.train_with_defaults(
            callbacks=[
                ModelSaver(),
                ScheduledHyperParamSetter("gen_lr", [(0, 1e-3), (4, 1e-4)], interp="linear"),
            ],
            session_creator=NewSessionCreator(config=get_default_sess_config()),
            session_init=get_model_loader(args.load) if args.load else None,
            steps_per_epoch=12,
            max_epoch=args.epochs,
        )
