import tensorpack as tp
from tensorpack.compat import tfv1 as tf


class Line(tp.ModelDesc):
    def inputs(self):
        return [tf.TensorSpec([None], tf.float32, "x"), tf.TensorSpec([None], tf.float32, "y")]

    def build_graph(self, x, y):
        slope = tf.get_variable("slope", initializer=0.0)
        cost = tf.reduce_mean(tf.square(slope * x - y), name="cost")
        tp.add_moving_summary(cost)
        return cost

    def optimizer(self):
        return tf.train.GradientDescentOptimizer(0.1)


data = tp.FakeData([[8], [8]], size=10, dtype="float32", random=False)
config = tp.TrainConfig(model=Line(), data=tp.QueueInput(data), max_epoch=1)
tp.launch_train_with_config(config, tp.SimpleTrainer())
