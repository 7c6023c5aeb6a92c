import pytest

from tensorpack.callbacks.monitors.event_writer import cut_file, mark_of, marked_files
from tensorpack.compat import tfv1 as tf


def write(path, events):
    """Writes an event file; returns where its records end."""
    ends = []
    with tf.io.TFRecordWriter(str(path)) as writer:
        for event in events:
            writer.write(event.SerializeToString())
            writer.flush()
            ends.append(path.stat().st_size)
    return ends


def steps(path):
    return [event.step for event in tf.train.summary_iterator(str(path))]


EVENTS = [tf.Event(file_version="brain.Event:2"), mark_of("me"), tf.Event(step=1), tf.Event(step=2)]


def test_a_file_cut_at_any_length_has_its_whole_records(tmp_path):
    path = tmp_path / "file"
    ends = write(path, EVENTS)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        cut_file(str(path), len(whole))  # more than the file has
        assert len(steps(path)) == sum(length >= end for end in ends)


def test_nothing_is_taken_away_if_it_cannot_be_kept(tmp_path, monkeypatch):
    path = tmp_path / "file"
    ends = write(path, EVENTS)

    def refuse(*_):
        raise OSError("no space")

    monkeypatch.setattr("tensorpack.callbacks.monitors.event_writer.write_atomic", refuse)
    with pytest.raises(OSError, match="no space"):
        cut_file(str(path), ends[0])
    assert steps(path) == [0, 0, 1, 2]


def test_only_the_second_record_is_a_mark(tmp_path):
    names = [f"events.out.tfevents.000000000{i}.host" for i in range(5)]
    write(tmp_path / names[0], EVENTS)
    write(tmp_path / names[1], EVENTS[:1])
    write(tmp_path / names[2], [EVENTS[0], tf.Event(step=1), EVENTS[1]])
    write(tmp_path / names[3], [EVENTS[0], mark_of("you")])
    write(tmp_path / names[4], EVENTS[:2])
    assert marked_files(str(tmp_path), "me") == [names[0], names[4]]
