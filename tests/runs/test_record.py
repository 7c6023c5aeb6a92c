import pytest

from tensorpack.runs import read_record


@pytest.mark.parametrize("content", ["", "{", "[]", '{"attempts": 3}', "\0"])
def test_a_damaged_file_is_named(tmp_path, content):
    assert read_record(str(tmp_path)) is None
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(ValueError, match="run.json is damaged"):
        read_record(str(tmp_path))


def test_a_record_of_an_earlier_version_is_read(tmp_path):
    (tmp_path / "run.json").write_text('{"format": 1, "attempts": [{"step": 2}], "tags": [3]}')
    assert read_record(str(tmp_path)) == {"format": 1, "attempts": [{"step": 2}], "tags": [3]}
