"""A monitored session with hooks, stopped at a step and gone on with from its checkpoint."""

import tempfile

import tensorflow as tf

folder = tempfile.mkdtemp()


class Count(tf.train.SessionRunHook):
    def begin(self):
        self.steps = []

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(tf.train.get_global_step())

    def after_run(self, run_context, run_values):
        self.steps.append(int(run_values.results))


def run(last):
    with tf.Graph().as_default():
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        step = tf.train.get_or_create_global_step()
        train = tf.group(tf.assign_add(w, 1.0), tf.assign_add(step, 1))
        count = Count()
        hooks = [tf.train.StopAtStepHook(last_step=last), count]
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=folder, hooks=hooks, save_checkpoint_steps=2, log_step_count_steps=None
        ) as sess:
            while not sess.should_stop():
                sess.run(train)
        return len(count.steps)


assert run(5) == 5
assert run(8) == 3
assert tf.train.load_checkpoint(folder).get_tensor("w") == 8
tf.gfile.DeleteRecursively(folder)
