"""Images come from lists and folders as RGB or grey, and files that are broken are found out."""

import os
import re
import struct
import sys
import zlib

import numpy as np
import pytest

from tensorpack.dataflow import DamagedFile, ImageFolder, ImageFromFile, ImageFromList
from tests.contracts.dataflow import DataFlowContract, assert_same

cv2 = pytest.importorskip("cv2")


def picture(value, height=4, width=6):
    """An image in RGB whose red is `value`."""
    image = np.zeros((height, width, 3), np.uint8)
    image[:, :, 0] = value
    return image


def write(path, image, extension=".png"):
    os.makedirs(os.path.dirname(str(path)), exist_ok=True)
    good, data = cv2.imencode(extension, np.ascontiguousarray(image[:, :, ::-1]))
    assert good
    path.write_bytes(data.tobytes())
    return str(path)


def noise():
    return np.random.RandomState(0).randint(0, 256, (40, 60, 3), np.uint8)


class FromFiles(DataFlowContract):
    length = 5

    @pytest.fixture(autouse=True)
    def files(self, tmp_path):
        self.folder = tmp_path
        self.paths = [write(tmp_path / "c" / f"{i}.png", picture(i)) for i in range(5)]
        (tmp_path / "list").write_text("".join(f"c/{i}.png {i % 2}\n" for i in range(5)))


class TestImageFromFile(FromFiles):
    def make_flow(self):
        return ImageFromFile(self.paths)


class TestImageFolder(FromFiles):
    def make_flow(self):
        return ImageFolder(self.folder, shuffle=False)


class TestImageFromList(FromFiles):
    def make_flow(self):
        return ImageFromList(self.folder / "list", shuffle=False)


def test_colours_are_rgb_and_grey_has_one_channel(tmp_path):
    ((image,),) = ImageFromFile([write(tmp_path / "a.png", picture(200))])
    assert_same(image, picture(200))
    path = write(tmp_path / "b.png", np.full((4, 6, 3), 77, np.uint8))
    ((image,),) = ImageFromFile([path], channel=1)
    assert_same(image, np.full((4, 6, 1), 77, np.uint8))


@pytest.mark.parametrize("channel", [1, 3])
def test_resize_is_height_and_width(tmp_path, channel):
    path = write(tmp_path / "a.png", picture(9))
    ((image,),) = ImageFromFile([path], channel=channel, resize=(8, 5))
    assert image.shape == (8, 5, channel)
    ((image,),) = ImageFromFile([path], channel=channel, resize=7)
    assert image.shape == (7, 7, channel)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "text.png").write_text("no image")
    for name, match in [
        ("text.png", r"text.png is not an image that Pillow reads \(8 bytes\)"),
        ("missing.png", "missing.png cannot be read: .*No such file"),
    ]:
        with pytest.raises(DamagedFile, match=match):
            list(ImageFromFile([tmp_path / name]))
    with pytest.raises(DamagedFile, match="text.png is not an image that OpenCV reads"):
        list(ImageFromFile([tmp_path / "text.png"], max_pixels=None))


@pytest.mark.fault_row(58)
@pytest.mark.parametrize(
    "extension, has_thumbnail", [(".jpg", False), (".jpg", True), (".png", False)]
)
def test_a_file_cut_off_anywhere_is_an_error(tmp_path, extension, has_thumbnail):
    path = write(tmp_path / f"a{extension}", noise(), extension)
    data = (tmp_path / f"a{extension}").read_bytes()
    if has_thumbnail:  # whose end is not the end of the image
        thumbnail = b"\xff\xd8 small \xff\xda pixels \xff\xd9"
        data = (
            data[:2] + b"\xff\xfe" + (len(thumbnail) + 2).to_bytes(2, "big") + thumbnail + data[2:]
        )
    (tmp_path / f"a{extension}").write_bytes(data + b"\0\xff\xda and more")
    assert len(list(ImageFromFile([path]))) == 1
    end = len(data) - (0 if extension == ".jpg" else 4)  # of a PNG all but a checksum
    for size in [*range(1, 64), *range(64, end, 97), *range(end - 20, end)]:
        (tmp_path / f"a{extension}").write_bytes(data[:size])
        what = rf"(cut off after {size} bytes|not an image that Pillow reads \({size} bytes\))"
        with pytest.raises(DamagedFile, match=rf"a\{extension} is {what}"):
            list(ImageFromFile([path]))


@pytest.mark.fault_row(58)
@pytest.mark.parametrize("extension", [".jpg", ".png"])
def test_an_image_with_too_many_pixels_is_not_decoded(tmp_path, extension, monkeypatch):
    path = write(tmp_path / f"a{extension}", noise(), extension)
    assert len(list(ImageFromFile([path], max_pixels=2400))) == 1
    huge = with_size((tmp_path / f"a{extension}").read_bytes(), extension, 30000, 30000)
    (tmp_path / f"huge{extension}").write_bytes(huge)
    monkeypatch.setattr(cv2, "imdecode", None)
    with pytest.raises(DamagedFile, match="it has 40 x 60 pixels, more than max_pixels=2399"):
        list(ImageFromFile([path], max_pixels=2399))
    with pytest.raises(DamagedFile, match=rf"huge{extension} is .*900000000 pixels"):
        list(ImageFromFile([tmp_path / f"huge{extension}"]))


def with_size(data, extension, height, width):
    """Returns the bytes of a JPEG or PNG file with another size in its header."""
    data = bytearray(data)
    if extension == ".png":
        data[16:24] = struct.pack(">II", width, height)
        data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    else:
        start = data.index(b"\xff\xc0")
        data[start + 5 : start + 9] = struct.pack(">HH", height, width)
    return bytes(data)


def test_without_pillow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    path = write(tmp_path / "a.jpg", noise(), ".jpg")
    assert len(list(ImageFromFile([path], max_pixels=1))) == 1
    (tmp_path / "a.jpg").write_bytes((tmp_path / "a.jpg").read_bytes()[:-1])
    with pytest.raises(DamagedFile, match="a.jpg is cut off"):
        list(ImageFromFile([path]))


def test_colours_with_an_older_opencv(tmp_path, monkeypatch):
    path = write(tmp_path / "a.png", noise())
    monkeypatch.delattr(cv2, "IMREAD_COLOR_RGB", raising=False)
    ((image,),) = ImageFromFile([path])
    assert_same(image, noise())


def test_wrong_arguments_and_a_missing_opencv(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="channel=2"):
        ImageFromFile([], channel=2)
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(ImportError, match="pip install opencv-python-headless"):
        ImageFromFile([tmp_path / "a.png"])


def test_a_folder_of_classes(tmp_path, capsys):
    write(tmp_path / "dog" / "b.PNG", picture(3))
    write(tmp_path / "dog" / "a.png", picture(2))
    write(tmp_path / "cat" / "deep" / "er.png", picture(1))
    (tmp_path / "cat" / "readme.txt").write_text("no image")
    (tmp_path / "file.png").write_text("no class")
    flow = ImageFolder(tmp_path, shuffle=False)
    assert "3 images of 2 classes" in capsys.readouterr().out
    assert flow.classes == ["cat", "dog"]
    assert [os.path.basename(path) for path in flow.files] == ["er.png", "a.png", "b.PNG"]
    found = [(int(image[0, 0, 0]), label) for image, label in flow]
    assert found == [(1, 0), (2, 1), (3, 1)]
    assert all(type(label) is int for _, label in flow)
    shuffled = ImageFolder(tmp_path)
    assert sorted((int(image[0, 0, 0]), label) for image, label in shuffled) == found


def names(flow):
    return {os.path.relpath(path, os.path.dirname(path) + "/..") for path in flow.files}


def test_a_folder_is_split_by_class(tmp_path):
    for name, count in [("cat", 10), ("dog", 5), ("emu", 2)]:
        for i in range(count):
            write(tmp_path / name / f"{i}.png", picture(i))
    train, test = (ImageFolder(tmp_path, part=part, shuffle=False) for part in ("train", "test"))
    assert test.labels == [0, 0, 1, 2]
    assert train.labels == [0] * 8 + [1] * 4 + [2]
    assert not names(train) & names(test)
    assert names(train) | names(test) == names(ImageFolder(tmp_path))
    assert [label for _, label in test] == test.labels
    assert names(ImageFolder(tmp_path, part="test", seed=1)) != names(test)
    assert len(ImageFolder(tmp_path, part="test", test_share=0.99)) == 9 + 4 + 1
    before = {name for name in names(test) if name.startswith("cat")}
    assert before == {"cat/0.png", "cat/1.png"}  # in each process
    write(tmp_path / "bee" / "0.png", picture(0)), write(tmp_path / "dog" / "more.png", picture(0))
    assert before < names(ImageFolder(tmp_path, part="test"))  # whatever other classes have


def test_folders_that_are_wrong(tmp_path):
    with pytest.raises(ValueError, match="has no subfolders"):
        ImageFolder(tmp_path)
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "a.xyz").write_bytes(b"")
    with pytest.raises(ValueError, match="cat has no images among its 1 files"):
        ImageFolder(tmp_path)


def test_a_list_of_images(tmp_path):
    paths = [
        write(tmp_path / f"{name}.png", picture(i)) for i, name in enumerate(["a b", "\u00e9"])
    ]
    (tmp_path / "list").write_bytes(f"\ufeffa b.png 3\r\n\n  {paths[1]}\t0 \n".encode())
    flow = ImageFromList(tmp_path / "list", shuffle=False)
    assert [(int(image[0, 0, 0]), label) for image, label in flow] == [(0, 3), (1, 0)]
    (tmp_path / "list2").write_text("a b.png 1")
    assert ImageFromList(tmp_path / "list2", "/root").lst.files == ["/root/a b.png"]


@pytest.mark.parametrize("line", ["a.png", "a.png x", "3"])
def test_a_wrong_line_of_a_list_is_named(tmp_path, line):
    (tmp_path / "list").write_text(f"a.png 1\n{line}\n")
    with pytest.raises(DamagedFile, match="list: line 2 is not a path and a label"):
        ImageFromList(tmp_path / "list")


def test_labels_stay_with_their_images(tmp_path):
    for i in range(6):
        write(tmp_path / f"{i}.png", picture(i))
    (tmp_path / "list").write_text("".join(f"{i}.png {i * 10}\n" for i in range(6)))
    os.remove(str(tmp_path / "3.png"))
    flow = ImageFromList(tmp_path / "list", channel=3, resize=(2, 2), max_errors=1)
    found = [(int(image[0, 0, 0]), label) for image, label in flow]
    assert sorted(found) == [(i, i * 10) for i in (0, 1, 2, 4, 5)]


def test_images_come_with_their_paths_as_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.png", picture(1)), write(tmp_path / "b.png", picture(2))
    flow = ImageFromFile(iter(["b.png", tmp_path / "a.png"]), names=True)
    assert [(int(image[0, 0, 0]), name) for image, name in flow] == [
        (int(picture(2)[0, 0, 0]), "b.png"),
        (int(picture(1)[0, 0, 0]), str(tmp_path / "a.png")),
    ]


@pytest.mark.fault_row(58)
def test_damaged_images_are_skipped_up_to_a_limit(tmp_path, capsys):
    good = write(tmp_path / "good.jpg", noise(), ".jpg")
    data = (tmp_path / "good.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(data[:1000])
    (tmp_path / "empty.jpg").write_bytes(b"")
    (tmp_path / "huge.jpg").write_bytes(with_size(data, ".jpg", 30000, 30000))
    paths = [tmp_path / f"{name}.jpg" for name in ("cut", "good", "empty", "huge", "good")]
    assert [name for _, name in ImageFromFile(paths, max_errors=3, names=True)] == [good, good]
    out = capsys.readouterr().out
    assert "Skipped 1 of at most 3: " in out and "cut.jpg is cut off after 1000 bytes" in out
    assert "empty.jpg is empty." in out and "errors=N" not in out
    assert re.search(r"huge.jpg is .*900000000 pixels", out)
    with pytest.raises(DamagedFile, match="huge.jpg .* has skipped 2 already"):
        list(ImageFromFile(paths, max_errors=2))
    with pytest.raises(DamagedFile, match=r"cut.jpg is cut off .*max_errors=N skips N of them\.$"):
        list(ImageFromFile(paths))
