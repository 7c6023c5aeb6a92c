"""Batches of records from a file, by other libraries, for R19.

    .venv-peer-files/bin/python benchmarks/peers/readers.py --library grain --folder FOLDER

Each writes the records once, in its own format, and reads them in their order as it documents:
small records in this process, pictures also from worker processes, of grain or of torch. grain
reads pictures only: with small records it is a hundred times as slow as others.
"""

import os

import numpy as np
from _clock import parse_args, per_second, print_rate
from _stream import BATCH, NUMBERS, check, decode, records

LABEL = "label"


def by_grain(kind, path, workers):
    """From an ArrayRecord; the label is the first byte."""
    import grain
    from array_record.python.array_record_module import ArrayRecordWriter

    if not os.path.exists(path):
        writer = ArrayRecordWriter(path, "group_size:1")
        for data, label in records(kind):
            writer.write(bytes([label]) + data)
        writer.close()

    def parse(record):
        return {"data": decode(record[1:]), LABEL: record[0]}

    found = grain.MapDataset.source(grain.sources.ArrayRecordDataSource(path)).repeat()
    threads = grain.ReadOptions(num_threads=2)  # its fastest
    found = found.map(parse).batch(BATCH).to_iter_dataset(threads)
    return found.mp_prefetch(grain.MultiprocessingOptions(workers)) if workers else found


def by_torch(kind, path, workers):
    """Raw bytes from an LMDB, without a checksum; the label is the first one."""
    import lmdb
    import torch

    if not os.path.exists(path):
        with lmdb.open(path, 2**30, subdir=False) as file, file.begin(write=True) as txn:
            for number, (data, label) in enumerate(records(kind)):
                txn.put(b"%08d" % number, bytes([label]) + data)

    class Records(torch.utils.data.IterableDataset):
        def __iter__(self):
            with lmdb.open(path, subdir=False, readonly=True, lock=False) as file:
                while True:
                    with file.begin() as txn:
                        yield from (np.frombuffer(record, np.uint8) for _, record in txn.cursor())

    def collate(rows):
        rows = torch.from_numpy(np.stack(rows))
        return {"data": rows[:, 1:], LABEL: rows[:, 0].long()}

    return torch.utils.data.DataLoader(Records(), BATCH, collate_fn=collate)


def by_tf(kind, path, workers):
    """From a TFRecord of examples; small ones are parsed as a batch."""
    import tensorflow as tf

    def feature(data, label):
        lists = {
            "data": tf.train.Feature(bytes_list=tf.train.BytesList(value=[data])),
            LABEL: tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
        }
        return tf.train.Example(features=tf.train.Features(feature=lists)).SerializeToString()

    if not os.path.exists(path):
        with tf.io.TFRecordWriter(path) as writer:
            for each in records(kind):
                writer.write(feature(*each))
    kinds = {
        each: tf.io.FixedLenFeature([], t) for each, t in (("data", "string"), (LABEL, "int64"))
    }

    def parse(batch):
        got = tf.io.parse_example(batch, kinds)
        return {"data": tf.io.decode_raw(got["data"], tf.uint8), LABEL: got[LABEL]}

    def picture(record):
        got = tf.io.parse_single_example(record, kinds)
        image = tf.image.resize(tf.io.decode_jpeg(got["data"]), (224, 224))
        image = tf.cast(image, tf.uint8)
        return {"data": tf.concat([image[:-1], tf.ones_like(image[-1:])], 0), LABEL: got[LABEL]}

    found, auto = tf.data.TFRecordDataset(path).repeat(), tf.data.AUTOTUNE
    if kind == "jpegs":
        found = found.map(picture, auto).batch(BATCH)
    else:
        found = found.batch(BATCH).map(parse, auto)
    return found.prefetch(auto).as_numpy_iterator()


def by_datasets(kind, path, workers):
    """From a memory-mapped table of Arrow."""
    import datasets

    if not os.path.exists(path):
        data, labels = zip(*records(kind))
        columns = {
            "data": [list(each) for each in data] if kind == "small" else data,
            LABEL: labels,
        }
        what = datasets.List(datasets.Value("uint8"), NUMBERS)
        what = what if kind == "small" else datasets.Value("binary")
        what = datasets.Features({"data": what, LABEL: datasets.Value("int64")})
        datasets.Dataset.from_dict(columns, what).save_to_disk(path)
    table = datasets.load_from_disk(path)
    if kind == "small":
        table = table.with_format("numpy")
        while True:
            yield from table.iter(BATCH, drop_last_batch=True)
    table = table.with_transform(
        lambda rows: {"data": [decode(each) for each in rows["data"]], LABEL: rows[LABEL]}
    )
    if workers:
        import torch

        while True:
            yield from torch.utils.data.DataLoader(
                table, BATCH, num_workers=workers, drop_last=True
            )
    while True:
        for batch in table.iter(BATCH, drop_last_batch=True):
            yield {"data": np.stack(batch["data"]), LABEL: np.array(batch[LABEL])}


LIBRARIES = {"grain": by_grain, "torch": by_torch, "tf.data": by_tf, "datasets": by_datasets}


def main():
    """Measures and prints."""
    args = parse_args(__doc__, library="grain", kind="small", folder=".", seconds=3.0)
    cores = len(os.sched_getaffinity(0))
    workers = cores if cores > 1 and args.kind == "jpegs" else 0
    path = os.path.join(args.folder, f"{args.library}-{args.kind}")
    batches = LIBRARIES[args.library](args.kind, path, workers)
    stream = (batch["data"] for batch in batches)
    print_rate("datapoints", per_second(stream, args.seconds, BATCH, check, warm_up=2.0))


if __name__ == "__main__":
    main()
