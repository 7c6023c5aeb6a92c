"""R9 and R20: how long `import tensorpack` takes, and the main job to its first update."""

import os
import subprocess
import sys
import tempfile
import time

import _update
from _contest import Contest, difference
from _programs import CHECKOUT, example, fresh


def imported():
    """`import tensorpack` beyond the bare interpreter; fails if it loads TensorFlow."""
    code = "import tensorpack"
    milliseconds_of(f"{code}, sys; sys.exit('tensorflow' in sys.modules)")  # writes the bytecode
    yield Contest(
        "import tensorpack, beyond the bare interpreter",
        {"import": lambda: milliseconds_of(code), "interpreter": lambda: milliseconds_of("")},
        unit="ms",
        judge=difference,
        target="<= 50",
    )


def milliseconds_of(code):
    """How long an interpreter takes for a program."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, cwd=str(CHECKOUT))
    return 1000 * (time.perf_counter() - start)


def first_update(rom="breakout.bin", filling=3000):
    """The main job from the shell to its first update, against a bare script.

    The script imports TensorFlow, builds the same networks, cost and optimizer, makes a session,
    initialises it, and updates once. `--filling` transitions are played before the first update
    of the main job; their time does not count.
    """
    yield Contest(
        "start-up of the main job but for filling / bare TensorFlow",
        {
            "run": lambda: fresh(start_dqn, time.time(), rom, filling),
            "bare": lambda: fresh(start_bare, time.time()),
        },
        unit="s",
        target="<= 1.2",
    )


def start_dqn(begun, rom, filling):
    """Starts the main job, with default flags otherwise; returns seconds without its filling."""
    example("DeepQNetwork")
    import DQN
    from expreplay import make_input  # noqa: F401 - loads TensorFlow, as the job does

    import tensorpack as tp

    marks = []

    class Mark(tp.Callback):
        """Comes before the other callbacks, and after them."""

        def _before_train(self):
            marks.append(time.time())

    class Last(Mark):
        def _trigger_step(self):
            marks.append(time.time())
            raise tp.StopTraining("That is enough to know.")

    get_callbacks = DQN.get_callbacks
    DQN.get_callbacks = lambda *args: [Mark(), *get_callbacks(*args), Last()]
    with tempfile.TemporaryDirectory() as folder:
        logdir = os.path.join(folder, "log")
        DQN.main(["--rom", rom, "--logdir", logdir, "--init-memory-size", str(filling)])
    ready, filled, updated = marks
    return updated - filled + ready - begun


def start_bare(begun):
    """Starts the update of the main job in TensorFlow alone; returns seconds."""
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()

    shapes, start = _update.shapes(), tf.random_normal_initializer(stddev=0.01)

    def get(name):
        return tf.get_variable(name, shapes[name], initializer=start)

    def values(scope, x):
        with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
            for name, (*_, stride) in _update.CONVOLUTIONS.items():
                x = tf.nn.conv2d(x, get(f"{name}/W"), stride, "SAME") + get(f"{name}/b")
                x = tf.where(x > 0, x, get(f"{name}/alpha") * x)
            x = tf.reshape(x, [-1, shapes["fc0/W"][0]]) @ get("fc0/W") + get("fc0/b")
            return tf.nn.leaky_relu(x, _update.SLOPE) @ get("fct/W") + get("fct/b")

    fed = [tf.placeholder(dtype, shape) for shape, dtype in _update.INPUTS]
    frames, action, reward, over = fed
    images = tf.cast(tf.transpose(frames, [0, 2, 3, 1]), tf.float32) / 255
    state, following = images[..., :4], images[..., 1:]
    best = tf.one_hot(tf.argmax(values("online", following), 1), _update.ACTIONS)
    then = _update.DISCOUNT * tf.reduce_sum(values("target", following) * best, 1)
    wanted = tf.clip_by_value(reward, -1, 1) + tf.where(over, tf.zeros_like(then), then)
    found = tf.reduce_sum(values("online", state) * tf.one_hot(action, _update.ACTIONS), 1)
    cost = tf.losses.huber_loss(tf.stop_gradient(wanted), found)
    variables = tf.trainable_variables("online")
    grads, _ = tf.clip_by_global_norm(tf.gradients(cost, variables), _update.MAX_NORM)
    optimizer = tf.train.AdamOptimizer(_update.LEARNING_RATE, epsilon=_update.EPSILON)
    update = optimizer.apply_gradients(zip(grads, variables))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(update, dict(zip(fed, _update.random_arrays(_update.INPUTS))))
        return time.time() - begun
