"""The page about a log directory: what it shows, and that nothing in the directory can break it."""

import base64
import json
import os
import re
import struct
import zlib
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest

from tensorpack.report import write_report
from tensorpack.runs.record import RunRecord

EVIL = "\"><script>alert('x')</script>&amp;"
_VOID = {"meta", "img", "link", "br"}


class Page(HTMLParser):
    """A page that is parsed: its tags are checked to be closed, its text and links collected."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.path = path
        self.text, self.tags, self.links, self.images, self._open = "", [], [], [], []
        with open(path, encoding="utf-8") as file:
            self.source = file.read()
        self.feed(
            re.sub(r"/>", ">", re.sub(r"<(path|circle)([^>]*)/>", r"<\1\2></\1>", self.source))
        )
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        values = dict(attrs)
        assert not [name for name in values if name.startswith("on")]
        self.links += [values["href"]] if "href" in values else []
        self.images += [values["src"]] if "src" in values else []
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += "" if self._open[-1:] == ["style"] else data


def stats(*scores, name="score"):
    return json.dumps(
        [{"epoch_num": i, "global_step": 10 * i, name: each} for i, each in enumerate(scores, 1)]
    )


def page_of(directory, out=None):
    return Page(write_report(str(directory), out))


def png(width=2):
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, 1, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0" * (width + 1))
    head = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    return head + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def test_the_result_comes_first_then_the_circumstances(tmp_path):
    first, second = RunRecord(str(tmp_path)), RunRecord(str(tmp_path))
    first.write({"started": "2026-01-31T12:00:00Z", "seconds": 60, "result": "stopped", "step": 20})
    facts = {
        "command": ["python", "train.py", "--name", "a b", "~/a b", "x ~/"],
        "result": "failed",
        "message": "ValueError: no",
        "seconds": 3600.0,
        "step": 1234567,
        "git": {"commit": "c" * 40, "branch": "main", "dirty": True},
        "machine": {
            "cpu": "Quick",
            "cores": 4,
            "memory": 8e9,
            "gpus": [{"name": "H", "memory": 1e9}],
        },
        "training": {"trainer": "T", "input": ["Q(F)"], "first_step": 20, "seed": None},
    }
    second.write(facts, {"parameters": [["fc/W", [3, 4], "float32"], ["s", [], "float16"]]})
    page = page_of(tmp_path)
    places = [page.text.index(each) for each in ("failed", "ValueError: no", "Command")]
    assert places == sorted(places)
    for part in (
        "step 1,234,567, after 1 h 1 min",
        "python train.py --name 'a b' ~/'a b' 'x ~/'",
        f"{'c' * 40} on main, with changes",
        "Quick, 4 cores; 8.0 GB of memory; H (1.0 GB)",
        "not fixed: this run cannot be repeated exactly",
        "2 variables, 13 numbers",
        "3 x 4",
    ):
        assert part in page.text, part
    assert page.text.count("stopped") == 1  # in the table of attempts


def test_the_log_begins_with_an_epoch_if_there_is_one(tmp_path):
    said = ["start-up"] * 30 + ["[1125 @loop.py:80] Start Epoch 1 ...", "cost: 3"]
    (tmp_path / "log.log").write_text("\n".join(said))
    page = page_of(tmp_path).text
    assert "cost: 3" in page and "Start Epoch 1" in page and "start-up" not in page


def test_curves_are_grouped_and_attempts_are_marked(tmp_path):
    epochs = [
        {"epoch_num": i, "global_step": i, "lr": 1, "cost": 2 / i, "score": i, "param-summary/W": i}
        for i in range(1, 6)
    ]
    (tmp_path / "stats.json").write_text(json.dumps(epochs))
    (tmp_path / "stats.json.0131-120000").write_text(stats(5, 6))
    (tmp_path / "stats.json.0131-130000").write_text(json.dumps(epochs[:3]))  # of a resume
    for first_step in (0, 3):
        RunRecord(str(tmp_path)).write({"training": {"first_step": first_step}})
    page = page_of(tmp_path)
    names = ["Scores", "Costs and errors", "Others", "Statistics of"]
    assert [page.text.index(name) for name in names] == sorted(map(page.text.index, names))
    assert page.tags.count("svg") == 4
    assert page.source.count('class="mark"') == 4
    assert page.source.count('class="line earlier"') == 1
    assert "last 5, from 1 to 5" in page.text and "step 5: 0.4" in page.text


def test_everything_is_escaped_and_nothing_can_run(tmp_path):
    folder = tmp_path / EVIL.replace("/", "")
    folder.mkdir()
    epochs = [{"epoch_num": i, "global_step": i, EVIL: i, f"{EVIL}2": None} for i in (1, 2)]
    (folder / "stats.json").write_text(json.dumps(epochs) + EVIL)
    (folder / "stats.json.0131-120000").write_text("[")
    (folder / "log.log").write_text(f"a line {EVIL}\n")
    (folder / "javascript:alert(1)").write_text("")
    (folder / f"{EVIL.replace('/', '')}.png").write_bytes(png())
    (folder / "time_reports.jsonl").write_text(
        (json.dumps({"text": EVIL, "step": EVIL}) + "\n") * 2
    )
    values = dict.fromkeys(("result", "message", "checkpoint", "host", "folder", "step"), EVIL)
    values.update(started=EVIL, ended=EVIL)
    values.update(command=[EVIL], git={"commit": EVIL, "branch": EVIL}, versions={EVIL: EVIL})
    values.update(
        machine={"cpu": EVIL, "gpus": [{"name": EVIL}]}, training={"model": EVIL, "seed": EVIL}
    )
    for _ in range(2):
        RunRecord(str(folder)).write(values, {"parameters": [[EVIL, [2], EVIL]]})
    page = page_of(folder)
    assert "script" not in page.tags and "b" in page.tags
    assert page.text.count(EVIL) > 15
    assert "default-src 'none'" in page.source
    assert all(link.startswith("./") for link in page.links)


@pytest.mark.parametrize("name", ["run.json", "stats.json", "log.log", "time_reports.jsonl"])
@pytest.mark.parametrize("content", [b"", b"\xff\0", b"[", b'{"a":'])
def test_damaged_files_are_left_out(tmp_path, name, content):
    (tmp_path / "log.log").write_text("the log\n")
    (tmp_path / name).write_bytes(content)
    page_of(tmp_path)


def test_images_are_shown_by_what_they_are(tmp_path, monkeypatch):
    (tmp_path / "log.log").write_text("")
    for epoch in (1, 2, 10):
        (tmp_path / f"W-ep{epoch:03d}.png").write_bytes(png(epoch))
    (tmp_path / "text.png").write_text("<svg onload=alert(1)>")
    (tmp_path / "large.png").write_bytes(png() + b"\0" * (1 << 20))
    page = page_of(tmp_path)
    assert len(page.images) == 1 and page.images[0].startswith("data:image/png;base64,")
    assert "W-ep010.png" in page.text and "2 images are not shown" in page.text


def test_the_last_frame_of_a_video(tmp_path):
    cv2 = pytest.importorskip("cv2")
    np = pytest.importorskip("numpy")
    (tmp_path / "log.log").write_text("")
    (tmp_path / "videos").mkdir()
    write_video(tmp_path / "videos" / "game-5.avi", (0, 100, 250))
    page = page_of(tmp_path)
    assert len(page.images) == 1 and "the last frame of the newest video" in page.text
    content = np.frombuffer(base64.b64decode(page.images[0].partition(",")[2]), np.uint8)
    assert cv2.imdecode(content, 1).mean() > 230


def write_video(path, shades, size=32):
    cv2 = pytest.importorskip("cv2")
    np = pytest.importorskip("numpy")
    video = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"MJPG"), 10, (size, size))
    for shade in shades:
        video.write(np.full((size, size, 3), shade, np.uint8))
    video.release()


def test_links_lead_to_the_files_from_wherever_the_page_is(tmp_path):
    folder, elsewhere = tmp_path / "log dir", tmp_path / "pages"
    folder.mkdir(), elsewhere.mkdir()
    (folder / "log.log").write_text("")
    (folder / "a#b?c%d.txt").write_text("")
    for out in (None, str(elsewhere / "page.html")):
        page = page_of(folder, out)
        places = [os.path.join(os.path.dirname(page.path), unquote(link)) for link in page.links]
        assert len(places) >= 2 and all(os.path.isfile(place) for place in places)


def test_an_old_run_has_its_parameters_and_times_in_the_log(tmp_path):
    (tmp_path / "log.log").write_text(
        "[0131 12:00:00 @model_utils.py:25] Model Parameters: \n"
        "name    shape      dim\n------  -------  -----\n"
        "fc/W:0  [2, 3]       6\nb:0     []           1\n"
        "Total #vars=2, #param=7 (0.00 MB assuming all float32)\n"
        "[0131 12:01:00 @report.py:1] Where the time goes: stepping 99 %.\n"
    )
    page = page_of(tmp_path)
    assert "2 variables, 7 numbers" in page.text and "2 x 3" in page.text
    assert "0131 12:01:00: Where the time goes: stepping 99 %." in page.text


def test_what_is_no_directory_is_refused(tmp_path):
    with pytest.raises(ValueError, match="give the log directory of a training"):
        write_report(str(tmp_path / "x"))
