"""Log directories as somebody might make them to read, hold up or fill the machine of a reader.

`DIRECTORIES` has a function for each, by name, which fills the empty folder `here`. `outside` has
files that are not to be read, see `make_outside`.
"""

import hashlib
import io
import json
import os
import socket
import struct
import zipfile
import zlib

import numpy as np

CANARY = "canary-5b1f"
EVIL = "\"'><script>alert('x')</script><img src=x onerror=alert(1)>&amp;"
ESCAPES = "\033[2J\033]0;title\007\r\x9b31m\u202e"
_RECORDS = ("run.json", "stats.json", "log.log", "time_reports.jsonl")
_CHECKPOINT = ("checkpoint", "model-1.index", "model-1.data-00000-of-00001")
_MANIFEST = "model-1.manifest.json"
_SPARSE_BYTES = 8 << 30
DIRECTORIES = {}


def directory(make):
    """Adds a function to the table, by its name."""
    DIRECTORIES[make.__name__] = make
    return make


def several(choices, prefix):
    """Adds a function to the table once for each of some arguments."""

    def add(make):
        for name, choice in choices.items():
            DIRECTORIES[f"{prefix}_{name}"] = lambda here, outside, c=choice: make(here, outside, c)
        return make

    return add


def stats(*values, name="cost"):
    """The text of a `stats.json`."""
    epochs = [{"epoch_num": i, "global_step": i, name: each} for i, each in enumerate(values, 1)]
    return json.dumps(epochs)


def record(**facts):
    """The text of a `run.json` with one attempt."""
    return json.dumps({"format": 1, "attempts": [{"id": "a", "result": "finished", **facts}]})


def sound(here):
    """Writes a run of which nothing is wrong."""
    (here / "run.json").write_text(record())
    (here / "stats.json").write_text(stats(3, 2, 1))
    (here / "log.log").write_text("a line\n")


def png(width=2, height=1, extra=b""):
    """A small PNG, whatever its header says."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(b"\0" * 3))
    return b"\x89PNG\r\n\x1a\n" + head + pixels + chunk(b"IEND", b"") + extra


def avi(width=32, height=32, frames=(b"",), suggested=1 << 20):
    """A video of JPEG frames."""

    def chunk(kind, data):
        return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)

    sizes = (len(frames), 0, 1, suggested, width, height)
    main = struct.pack("<14I", 10**5, 0, 0, 16, *sizes, *[0] * 4)
    stream = b"vidsMJPG" + struct.pack("<10I4H", 0, 0, 0, 1, 10, 0, len(frames), 0, 0, 0, *[0] * 4)
    picture = struct.pack("<3I2H4s5I", 40, width, height, 1, 24, b"MJPG", 0, 0, 0, 0, 0)
    streams = chunk(b"LIST", b"strl" + chunk(b"strh", stream) + chunk(b"strf", picture))
    header = chunk(b"LIST", b"hdrl" + chunk(b"avih", main) + streams)
    movie = chunk(b"LIST", b"movi" + b"".join(chunk(b"00dc", each) for each in frames))
    return chunk(b"RIFF", b"AVI " + header + movie)


def jpeg(width=32, height=32):
    """The head of a JPEG of any size, and little else."""
    frame = struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes((1, 34, 0, 2, 17, 1, 3, 17, 1))
    table = b"\xff\xdb" + struct.pack(">HB", 67, 0) + b"\1" * 64
    scan = b"\xff\xda" + struct.pack(">HB", 12, 3) + bytes((1, 0, 2, 17, 3, 17, 0, 63, 0))
    return b"\xff\xd8" + table + b"\xff\xc0" + frame + scan + b"\0" * 64 + b"\xff\xd9"


def npz(arrays, compression=zipfile.ZIP_STORED):
    """An archive of named bytes or arrays."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", compression) as archive:
        for name, each in arrays.items():
            if not isinstance(each, bytes):
                member = io.BytesIO()
                np.save(member, each, allow_pickle=True)
                each = member.getvalue()
            archive.writestr(name, each)
    return data.getvalue()


def npy(header, body=b""):
    """An array with any header."""
    header = header.encode("latin-1")
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + body


def write_manifest(here, **more):
    """Writes a manifest whose checksum is right, and the files of a checkpoint."""
    sound(here)
    files = {".index": b"index", ".data-00000-of-00001": b"data"}
    entries = {}
    for suffix, content in files.items():
        (here / f"model-1{suffix}").write_bytes(content)
        entries[suffix] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    content = {"files": entries, "format": 1, "step": 1, **more}

    def encode(content):
        return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode("ascii")

    content["sha256"] = hashlib.sha256(encode(content)).hexdigest()
    (here / _MANIFEST).write_bytes(encode(content))
    (here / "checkpoint").write_text('model_checkpoint_path: "model-1"\n')


def sparse(path, end=b""):
    """Makes a file of many gigabytes that takes no room on the disk."""
    with open(str(path), "wb") as file:
        file.truncate(_SPARSE_BYTES)
        file.seek(0, os.SEEK_END)
        file.write(end)


def make_outside(outside):
    """Writes files that nothing may read."""
    outside.mkdir()
    (outside / "stats.json").write_text(stats(1, 2, name=CANARY))
    (outside / "run.json").write_text(record(message=CANARY))
    (outside / "log.log").write_text(CANARY)
    (outside / "time_reports.jsonl").write_text(json.dumps({"text": CANARY}) + "\n")
    (outside / "checkpoint").write_text('model_checkpoint_path: "model-1"\n')
    for name in (*_CHECKPOINT[1:], _MANIFEST, "model-1", "model-1.state", "report.html"):
        (outside / name).write_text(CANARY)
    for name in ("000.png", "001.png", "002.png"):
        (outside / name).write_bytes(png(extra=CANARY.encode()))
    (outside / "video.avi").write_bytes(avi(frames=[jpeg()]))
    (outside / "weights.npz").write_bytes(npz({f"{CANARY}.npy": np.ones(2)}))


def put(here, name, outside, how):
    """Puts something else than a file at a name."""
    path = str(here / name)
    if os.path.lexists(path):
        os.remove(path)
    if how == "link":
        os.symlink(str(outside / name), path)
    elif how == "fifo":
        os.mkfifo(path)
    elif how == "folder":
        os.mkdir(path)
    elif how == "zero":
        os.symlink("/dev/zero", path)
    elif how == "loop":
        os.symlink(path, path)
    elif how == "socket":
        here_again = os.open(str(here), os.O_RDONLY)
        try:  # a path of a socket is short
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(f"/proc/self/fd/{here_again}/{name}")
        finally:
            os.close(here_again)


HOWS = {each: each for each in ("link", "fifo", "folder", "zero", "loop", "socket")}


@several(HOWS, "records")
def _records(here, outside, how):
    (here / "checkpoint").write_text("")
    for name in (*_RECORDS, "stats.json.0131-120000", "report.html"):
        put(here, name, outside, how if name != "report.html" or how == "link" else "")


@several(HOWS, "checkpoint")
def _checkpoint(here, outside, how):
    sound(here)
    for name in _CHECKPOINT:
        put(here, name, outside, how)


@several(HOWS, "variables")
def _variables(here, outside, how):
    write_manifest(here, variables={"W": {"dtype": "float32", "shape": [1]}})
    for name in (*_CHECKPOINT[1:], "model-1.state", "segments"):
        put(here, name, outside, how)
    if how == "link":
        put(here, _MANIFEST, outside, how)


@several(HOWS, "images")
def _images(here, outside, how):
    sound(here)
    for name in ("000.png", "001.png", "video.avi"):
        put(here, name, outside, how)
    if how == "link":
        for name in ("images", "samples", "videos"):
            os.symlink(str(outside), str(here / name))


@several(HOWS, "old_checkpoint")
def _old_checkpoint(here, outside, how):
    """Of before 2016: one file, without an ending."""
    sound(here)
    (here / "checkpoint").write_text('model_checkpoint_path: "model-1"\n')
    put(here, "model-1", outside, how)


@directory
def devices(here, outside):
    sound(here)
    (here / "stats.json").unlink()
    try:
        os.mknod(str(here / "stats.json"), 0o20666, os.makedev(1, 5))  # /dev/zero
    except OSError:  # not allowed
        put(here, "stats.json", outside, "zero")


CONTAINERS = {
    "ffconcat": "ffconcat version 1.0\nfile OUTSIDE/video.avi\n",
    "ffconcat_link": "ffconcat version 1.0\nfile link\n",
    "ffconcat_fifo": "ffconcat version 1.0\nfile fifo\n",
    "playlist": "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile://OUTSIDE/video.avi\n",
    "session": "v=0\nc=IN IP4 127.0.0.1\nm=video 5004 RTP/AVP 96\na=rtpmap:96 H264/90000\n",
    "svg": '<svg xmlns="http://www.w3.org/2000/svg"><image href="file://OUTSIDE/000.png"/></svg>',
}


@several(CONTAINERS, "video")
def _video(here, outside, text):
    sound(here)
    os.symlink(str(outside / "video.avi"), str(here / "link"))
    os.mkfifo(str(here / "fifo"))
    for name in ("a.avi", "b.mp4", "c.webm"):
        (here / name).write_text(text.replace("OUTSIDE", str(outside)))


@directory
def video_pattern(here, outside):
    sound(here)
    (here / "%03d.avi").write_bytes(avi(frames=[jpeg()]) + CANARY.encode())
    for i in range(3):
        os.symlink(str(outside / "video.avi"), str(here / f"{i:03d}.avi"))
        os.symlink(str(outside / f"{i:03d}.png"), str(here / f"{i:03d}.png"))
    os.utime(str(here / "%03d.avi"), (2**32, 2**32))


@several({"container": (65535, 32), "frame": (32, 65535), "sound": (32, 32)}, "video_huge")
def _video_huge(here, outside, sizes):
    sound(here)
    container, frame = sizes
    video = avi(container, container, [jpeg(frame, frame)] * 3, suggested=2**32 - 1)
    (here / "a.avi").write_bytes(video)


@directory
def video_garbage(here, outside):
    sound(here)
    (here / "a.avi").write_bytes(b"RIFF\xff\xff\xff\xffAVI " + b"\xff" * 5000)
    (here / "b.mp4").write_bytes(b"\0\0\0\x18ftypisom" + b"\xff" * 5000)
    (here / "c.webm").write_bytes(b"\x1aE\xdf\xa3" + b"\xff" * 5000)


@directory
def images_huge_headers(here, outside):
    sound(here)
    (here / "a.png").write_bytes(png(2**31 - 1, 2**31 - 1))
    (here / "b.gif").write_bytes(b"GIF89a\xff\xff\xff\xff\0\0\0")
    (here / "c.jpg").write_bytes(jpeg(65535, 65535))
    (here / "d.webp").write_bytes(b"RIFF\xff\xff\xff\xffWEBPVP8X" + b"\xff" * 30)


@directory
def images_by_thousands(here, outside):
    sound(here)
    (here / "images").mkdir()
    for i in range(3000):
        (here / "images" / f"{'1' * (i % 240)}-{i}x.png").write_bytes(png(extra=b"\0" * 10000))


@several({name: name for name in (*_RECORDS, *_CHECKPOINT, _MANIFEST)}, "sparse")
def _sparse(here, outside, name):
    write_manifest(here)
    sparse(here / name, b"\nthe end\n")


@directory
def sparse_images(here, outside):
    sound(here)
    for name in ("a.png", "b.mp4", "events.out.tfevents.1"):
        sparse(here / name)
    with open(str(here / "b.mp4"), "r+b") as file:
        file.write(b"\0\0\0\x18ftypisom")


@several({name: name for name in (*_RECORDS, "checkpoint")}, "garbage")
def _garbage(here, outside, name):
    sound(here)
    (here / name).write_bytes(bytes(range(256)) * 5000)


@several({"start": 1, "middle": 0.5, "end": 0.97}, "truncated")
def _truncated(here, outside, share):
    sound(here)
    write_manifest(here)
    for name in (*_RECORDS[:3], *_CHECKPOINT, _MANIFEST):
        content = (here / name).read_bytes()
        (here / name).write_bytes(content[: int(share if share >= 1 else len(content) * share)])


@several({"lists": ("[", "]"), "objects": ('{"a":', "}")}, "deep")
def _deep(here, outside, brackets):
    write_manifest(here)
    begin, end = (each * 200000 for each in brackets)
    (here / "run.json").write_text('{"attempts": [{"message": ' + begin + "0" + end + "}]}")
    (here / "stats.json").write_text('[{"global_step": 1, "cost": ' + begin + "0" + end + "}]")
    (here / "time_reports.jsonl").write_text('{"text": ' + begin + "0" + end + "}\n")
    (here / _MANIFEST).write_text(begin + "0" + end)


@several({str(depth): depth for depth in (300, 900, 970)}, "deep_by")
def _deep_by(here, outside, depth):
    """Just as deep as the decoder goes, so that what follows may go too deep."""
    nested = "[" * depth + "]" * depth
    sound(here)
    facts = json.dumps(dict.fromkeys((*_FIELDS, *_TRAINING), 0)).replace(" 0", nested)
    (here / "run.json").write_text(f'{{"attempts": [{facts}, {facts}]}}')
    (here / "stats.json").write_text(f'[{{"global_step": 1, "cost": {nested}}}]')
    (here / "time_reports.jsonl").write_text(f'{{"text": "", "at": {nested}, "step": 1}}\n' * 2)
    (here / "checkpoint").write_text("")


@directory
def nul(here, outside):
    sound(here)
    (here / "run.json").write_text(record(message="a\0b", checkpoint="\0", folder="\0"))
    (here / "stats.json").write_text(stats(1, 2, name="a\0b"))
    (here / "log.log").write_bytes(b"\0" * 10000)
    (here / "checkpoint").write_bytes(b'model_checkpoint_path: "mod\0el-1"\n')


@directory
def surrogates(here, outside):
    odd = "a\ud800b\udcff"
    write_manifest(here, variables={odd: {"dtype": "float32", "shape": [2]}}, tensorflow=odd)
    facts = dict.fromkeys((*_FIELDS, *_TRAINING), odd)
    (here / "run.json").write_text(record(**{**facts, "training": facts, "command": [odd]}))
    (here / "stats.json").write_text(stats(1, 2, name=odd))
    (here / "time_reports.jsonl").write_text(json.dumps({"text": odd, "at": odd}) + "\n")


NUMBERS = {
    "nan": [float("nan")] * 3,
    "infinite": [float("inf"), 1, float("-inf")],
    "huge": [1e308, -1e308, 1e308],
    "tiny": [5e-324, 1, 1e-300],
    "close": [1.0, 1.0000000000000002, 1.0],
    "integers": [10**400, -(10**400), 1],
    "digits": [int("9" * 4000)] * 3,
    "mixed": [1e149, -1e149, 5e-324],
}


@several(NUMBERS, "numbers")
def _numbers(here, outside, values):
    sound(here)
    epochs = [dict.fromkeys(("global_step", "epoch_num", "cost", "hours"), each) for each in values]
    for i, epoch in enumerate(epochs):
        epochs.append({**epoch, "global_step": i})
        if i == 2:
            break
    (here / "stats.json").write_text(json.dumps(epochs[3:] + epochs[:3]))
    (here / "stats.json.0131-120000").write_text(json.dumps(epochs[:3] + epochs[3:]))
    facts = dict.fromkeys(("step", "epoch", "seconds", "process", "started"), values[0])
    sizes = [["W", values, "float32"], ["V", [2**62] * 60, "f"], ["U", [[]], "f"]]
    machine = {"memory": values[0], "cores": values[0], "cpu": "x"}
    attempt = {**facts, "machine": machine, "training": {"first_step": values[0]}}
    content = json.dumps({"attempts": [attempt, attempt], "parameters": sizes})
    (here / "run.json").write_text(content)
    (here / "log.log").write_text(
        "Model Parameters: \nname\n-----\n"
        f"fc/W:0  [2, {'9' * 5000}]       6\nb:0     []           1\nTotal #vars=2"
    )
    times = {"text": "t", "step": values[0], "waiting": values[0], "stepping": values[1]}
    (here / "time_reports.jsonl").write_text(json.dumps(times) + "\n")


@directory
def digits(here, outside):
    number = "7" * (4 << 20)
    write_manifest(here)
    some = number[: 1 << 19]
    (here / "run.json").write_text(f'{{"attempts": [{{"step": {number}}}]}}')
    (here / "stats.json").write_text(f'[{{"global_step": 1, "cost": {some}}}]')
    (here / "time_reports.jsonl").write_text(f'{{"text": "", "step": {some}}}\n')
    (here / _MANIFEST).write_text(f'{{"step": {number}}}')


_FIELDS = (
    "id command folder started ended seconds host process machine versions git training result "
    "message epoch step checkpoint"
).split()
_TRAINING = (
    "trainer model input workers towers precision xla steps_per_epoch resumed_from seed "
    "deterministic first_step commit branch dirty cpu cores memory gpus system"
).split()
TYPES = {
    "null": None,
    "true": True,
    "number": 3,
    "negative": -1.5,
    "text": "x",
    "list": [],
    "lists": [[[]], None, {}],
    "object": {},
    "objects": {"x": {"x": None}, "name": [1]},
}


@several(TYPES, "types")
def _types(here, outside, value):
    inner = dict.fromkeys(_TRAINING, value)
    one = dict.fromkeys(_FIELDS, value)
    two = {**one, "result": None}
    two.update(dict.fromkeys(("machine", "git", "training", "versions"), inner))
    three = {**two, "machine": {**inner, "gpus": [value, inner]}, "command": [value]}
    content = {"format": value, "attempts": [one, two, three], "parameters": [[value] * 3]}
    described = {"W": {"dtype": value, "shape": value}, "V": {"dtype": "int8", "shape": [value]}}
    write_manifest(here, variables=described, step=value, tensorflow=value)
    (here / "run.json").write_text(json.dumps(content))
    epochs = [{"epoch_num": i, "global_step": i, "a": value, "b": [value]} for i in (1, 2)]
    epochs += [{"epoch_num": value, "global_step": value}, value]
    (here / "stats.json").write_text(json.dumps(epochs))
    report = dict.fromkeys(("at", "step", "waiting", "stepping", "callbacks"), value)
    lines = [{"text": value, **report}, {"text": "t", **report}, value]
    (here / "time_reports.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))


DESCRIBED = {
    "negative": ("float32", [-5]),
    "enormous": ("float32", [2**62, 2**62]),
    "more_than_there_is": ("float32", [10**9]),
    "many_axes": ("float32", [1] * 1000),
    "digits": ("float32", [10**19]),
    "code": ("__import__('os').abort()", [1]),
    "numpy": ("(1000000000,)f8," * 1000, [1]),
    "object": ("object", [1]),
}


@several(DESCRIBED, "variable")
def _variable(here, outside, described):
    dtype, shape = described
    write_manifest(here, variables={"W": {"dtype": dtype, "shape": shape}})


@directory
def variables_by_thousands(here, outside):
    one = {"dtype": "float32", "shape": [1]}
    write_manifest(here, variables={f"layer{i}/W": one for i in range(20000)})


POINTERS = {
    "absolute": "OUTSIDE/model-1",
    "parent": "../outside/model-1",
    "pattern": "mod[e]l-?",
}


@several(POINTERS, "pointer")
def _pointer(here, outside, path):
    sound(here)
    path = path.replace("OUTSIDE", str(outside))
    (here / "checkpoint").write_text(f'model_checkpoint_path: "{path}"\n')


@directory
def pointer_by_thousands(here, outside):
    write_manifest(here)
    lines = [f'all_model_checkpoint_paths: "model-{i}"\n' for i in range(20000)]
    (here / "checkpoint").write_text("".join(lines))


@directory
def manifest_outside(here, outside):
    entry = {"sha256": "0" * 64, "size": 1}
    write_manifest(here, files={"/../../outside/log.log": entry, ".index": entry})


@several({"empty": b"", "table": b"\0" * 40 + bytes.fromhex("57fb808b247547db")}, "index")
def _index(here, outside, content):
    sound(here)
    (here / "model-1.index").write_bytes(content)
    (here / "model-1.data-00000-of-00001").write_bytes(content)


@directory
def state_bomb(here, outside):
    sound(here)
    (here / "model-1.state").write_bytes(b"\xdd\xff\xff\xff\xff" * 1000)
    state = (here / "model-1.state").read_bytes()
    entries = {
        ".state": {"sha256": hashlib.sha256(state).hexdigest(), "size": len(state)},
        ".index": {"sha256": hashlib.sha256(b"index").hexdigest(), "size": 5},
    }
    write_manifest(here, files=entries, variables={"W": {"dtype": "int8", "shape": [1]}})


@directory
def state_sparse(here, outside):
    entries = {".state": {"sha256": "0" * 64, "size": 1 << 30}}
    write_manifest(here, files=entries, variables={"W": {"dtype": "int8", "shape": [1]}})
    sparse(here / "model-1.state")
    os.truncate(str(here / "model-1.state"), 1 << 30)


BOMB = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (125000000,), }")
ARCHIVES = {
    "bomb": lambda: npz({"W.npy": BOMB + b"\0" * 10**9}, zipfile.ZIP_DEFLATED),
    "bombs": lambda: npz(
        {f"{i}.npy": np.zeros(6 * 10**6) for i in range(20)}, zipfile.ZIP_DEFLATED
    ),
    "lies": lambda: npz({"W.npy": BOMB}),
    "empty_axes": lambda: npz(
        {"W.npy": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 99999999999), }")}
    ),
    "pickle": lambda: npz({"W.npy": np.array([{}], object)}),
    "names": lambda: npz({f"{EVIL}{ESCAPES}.npy".replace("\0", ""): np.ones(2)}),
    "paths": lambda: npz({"../../outside/x.npy": np.ones(2), "/etc/passwd.npy": np.ones(2)}),
    "code": lambda: npz({"W.npy": npy("__import__('os').abort()")}),
    "many": lambda: npz({f"{i}.npy": np.ones(1, "i1") for i in range(3000)}),
    "not_finite": lambda: npz({"W.npy": np.array([np.nan, np.inf, 1e308, -1e308])}),
}


@several(ARCHIVES, "archive")
def _archive(here, outside, content):
    sound(here)
    (here / "weights.npz").write_bytes(content())


@directory
def archive_of_another_kind(here, outside):
    sound(here)
    (here / "weights.npz").write_bytes(b"PK\3\4" + b"\xff" * 1000)


@directory
def names_of_bytes(here, outside):
    write_manifest(here)
    folder = os.fsencode(str(here))
    for name in (b"\xff\xfe-1.png", b"\xff.avi", b"model-\xff.index", b"stats.json.\xff"):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(png() if name.endswith(b"png") else b"RIFF0000AVI ")


@directory
def escapes(here, outside):
    write_manifest(here, variables={ESCAPES: {"dtype": "int8", "shape": [1]}}, tensorflow=ESCAPES)
    facts = dict.fromkeys((*_FIELDS, *_TRAINING), ESCAPES)
    (here / "run.json").write_text(record(**{**facts, "training": facts, "command": [ESCAPES]}))
    (here / "stats.json").write_text(stats(1, 2, name=f"cost{ESCAPES}"))
    (here / "log.log").write_text(ESCAPES * 10)
    for name in (f"model-{ESCAPES}.index", f"model-1.{ESCAPES}", f"{ESCAPES}.png"):
        (here / name).write_bytes(png())


@directory
def scripts(here, outside):
    name = EVIL.replace("/", "")
    write_manifest(here, variables={EVIL: {"dtype": "int8", "shape": [1]}})
    facts = dict.fromkeys((*_FIELDS, *_TRAINING), EVIL)
    inner = {**facts, "input": [EVIL], "gpus": [{"name": EVIL, "memory": EVIL}]}
    facts.update(machine=inner, training=inner, git=inner, versions=inner, command=[EVIL])
    attempt = {**facts, "id": "b"}
    content = {"attempts": [facts, attempt], "parameters": [[EVIL, [2], EVIL]]}
    (here / "run.json").write_text(json.dumps(content))
    (here / "stats.json").write_text(stats(1, 2, 3, name=EVIL))
    (here / f"stats.json.0131-120000{name}").write_text(stats(3, name=EVIL))
    (here / "log.log").write_text(f"{EVIL}\n</pre></body></html>")
    times = {"text": EVIL, "at": EVIL, "waiting": 0.5}
    (here / "time_reports.jsonl").write_text((json.dumps(times) + "\n") * 2)
    (here / f"{name}.png").write_bytes(png(extra=EVIL.encode()))
    (here / "javascript:alert(1)").write_text("")
    (here / "data:text;html,x").write_text("")


@directory
def formulas(here, outside):
    sound(here)
    epochs = [
        {"global_step": i, "epoch_num": i, "$cost$": i, "cost $\\frac{": i, "_cost^{$$": i}
        for i in range(3)
    ]
    (here / "stats.json").write_text(json.dumps(epochs))


LOGS = {
    "tables": "Model Parameters: \n-\n-\n" * 40000,
    "table": "Model Parameters: \n-\n-\n" + "a [1] 1\n" * 100000,
    "brackets": "Model Parameters: \n-\n-\n" + "a" * 10**6 + "\nTotal #vars",
    "rows": "Model Parameters: \n-\n-\n" + ("a " * 2000 + "[1, " * 2000 + "\n") * 50 + "Total #v",
    "times": "[1234 " + "1:" * 400000 + "] Where the time goes\n" + "[1234 1 " * 50000,
    "line": "x" * (20 << 20),
}


@several(LOGS, "log")
def _log(here, outside, text):
    sound(here)
    (here / "log.log").write_text(text)
    (here / "run.json").write_text('{"attempts": []}')


def listed(parts):
    """A list of JSON."""
    return f"[{','.join(parts)}]"


def wide():
    """Epochs of thousands of scalars, as a large run may have them."""
    names = [f"scalar number {k}" for k in range(3000)]
    return listed(json.dumps({"global_step": i, **dict.fromkeys(names, i / 7)}) for i in range(500))


GIANTS = {
    "lists": lambda: "[" + "[]," * (20 << 20) + "[]]",
    "objects": lambda: '[{"global_step": 1, "a": [' + "{}," * (20 << 20) + "{}]}]",
    "epochs": lambda: "[" + '{"global_step":1},' * (3 << 20) + "{}]",
    "steps": lambda: listed(f'{{"global_step":{i},"cost":{i % 7}}}' for i in range(1 << 20)),
    "names": lambda: '[{"global_step": 1' + "".join(f',"{i:x}":1' for i in range(4 << 20)) + "}]",
    "names_by_epochs": lambda: listed(f'{{"global_step":1,"{i:x}":1}}' for i in range(1 << 20)),
    "text": lambda: '[{"global_step": 1, "a": "' + "\U0001f600" * (20 << 20) + '"}]',
    "spaces": lambda: "[" + " " * (100 << 20) + "]",
    "wide": wide,
}


@several(GIANTS, "giant_stats")
def _giant_stats(here, outside, text):
    sound(here)
    (here / "stats.json").write_text(text(), encoding="utf-8")


@directory
def giant_backups(here, outside):
    sound(here)
    for k in range(5):
        text = ",".join(f'{{"global_step":{i},"cost":{i % 7 + k}}}' for i in range(1 << 18))
        (here / f"stats.json.0131-12000{k}").write_text(f"[{text}]")


PARTS = {"text": '"x"', "escaped": '"\\"<&"', "lists": "[]", "objects": "{}", "numbers": "1"}


@several(PARTS, "giant_record")
def _giant_record(here, outside, part):
    write_manifest(here)
    count = (7 << 20) // (len(part) + 1)
    parts = listed([part] * (count // 2))
    (here / "run.json").write_text(f'{{"attempts": [{{"command": {parts}}}], "a": {parts}}}')
    (here / _MANIFEST).write_text(listed([part] * count))


@directory
def giant_message(here, outside):
    sound(here)
    (here / "run.json").write_text(record(message='"<&' * (2 << 20)))


@directory
def files_by_thousands(here, outside):
    write_manifest(here)
    for i in range(5000):
        (here / f"model-{i}.index").write_text("")
        (here / f"model-1.{i}").write_text("")
        (here / f"stats.json.0131-{i:06d}").write_text("[")


@directory
def events(here, outside):
    sound(here)
    record = struct.pack("<QI", 2**63, 0)
    for i in range(5):
        (here / f"events.out.tfevents.{i}").write_bytes(record * 100)


def named(name):
    """Adds a directory that is sound but for its own name."""

    def make(here, outside):
        inner = here / name
        inner.mkdir()
        write_manifest(inner, variables={"W": {"dtype": "int8", "shape": [1]}})

    return make


for _name, _text in {
    "script": EVIL.replace("/", ""),
    "escapes": ESCAPES,
    "formula": "_$x$ \\frac{",
    "pattern": "a[b]*?=c",
    "bytes": os.fsdecode(b"\xff\xfe"),
    "option": "--help",
    "line": "a\nb\n\n",
}.items():
    DIRECTORIES[f"named_{_name}"] = named(_text)
