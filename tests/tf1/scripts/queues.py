"""Files through string queues, batches by queue runners, and a coordinator."""

import os
import tempfile

import numpy as np
import tensorflow as tf

folder = tempfile.mkdtemp()
for number in range(2):
    with tf.python_io.TFRecordWriter(os.path.join(folder, f"{number}.tfrecord")) as writer:
        for value in range(10):
            feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[10 * number + value]))
            example = tf.train.Example(features=tf.train.Features(feature={"v": feature}))
            writer.write(example.SerializeToString())

names = tf.train.match_filenames_once(os.path.join(folder, "*.tfrecord"))
queue = tf.train.string_input_producer(names, num_epochs=1)
_, record = tf.TFRecordReader().read(queue)
value = tf.parse_single_example(record, {"v": tf.FixedLenFeature([], tf.int64)})["v"]
batch = tf.train.shuffle_batch([value], 5, capacity=20, min_after_dequeue=5)

random = tf.RandomShuffleQueue(100, 10, tf.float32, shapes=[[2]])
enqueue = random.enqueue_many(tf.random_uniform([20, 2]))
tf.train.add_queue_runner(tf.train.QueueRunner(random, [enqueue] * 2))
taken = random.dequeue_many(4)

with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess, coordinator)
    seen = []
    try:
        while not coordinator.should_stop():
            assert sess.run(taken).shape == (4, 2)
            seen.append(sess.run(batch))
    except tf.errors.OutOfRangeError:
        coordinator.request_stop()
    coordinator.join(threads)
assert sorted(np.concatenate(seen)) == list(range(20)), seen
tf.gfile.DeleteRecursively(folder)
