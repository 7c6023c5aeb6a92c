"""ILSVRC12 is read from folders, with the lists of an archive that is unpacked once."""

import numpy as np
import pytest

from tensorpack.dataflow import DamagedFile
from tensorpack.dataflow.dataset import ILSVRC12, ILSVRC12Files, ILSVRCMeta
from tensorpack.utils import change_env
from tests.contracts.dataflow import DataFlowContract
from tests.dataflow.dataset.published import mean_image, random_images, write_archive, write_image

cv2 = pytest.importorskip("cv2")

SYNSETS = ["n01440764", "n01443537", "n02119789"]
TRAIN = [("n01443537/n01443537_2.JPEG", 1), ("n01440764/n01440764_10026.JPEG", 0)]
VAL = [("ILSVRC2012_val_00000001.JPEG", 2), ("ILSVRC2012_val_00000002.JPEG", 0)]
IMAGES = random_images(2, 4, 6, 3)
XML = (
    "<annotation><size><width>6</width></size><object><name>n</name><bndbox><xmin>1</xmin>"
    "<ymin>0</ymin><xmax>5</xmax><ymax>3.5</ymax></bndbox></object><object><bndbox/></object>"
    "</annotation>"
)


def lines(images):
    return "".join(f"{path} {label}\n" for path, label in images).encode()


def meta_files():
    """The files in the archive, with three classes."""
    words = "".join(f"{synset} fish, number {i}\n" for i, synset in enumerate(SYNSETS))
    return {
        "synsets.txt": "\n".join(SYNSETS).encode(),
        "synset_words.txt": words.encode(),
        "train.txt": lines(TRAIN),
        "val.txt": lines(VAL),
        "test.txt": lines([("ILSVRC2012_test_00000001.JPEG", 0)]),
        "imagenet.bet.pickle": b"",
    }


@pytest.fixture
def folder(tmp_path):
    """Images of "train" and "val", and the archive of the lists."""
    write_archive(tmp_path / "ilsvrc_metadata" / "caffe_ilsvrc12.tar.gz", meta_files())
    for part, listed in ("train", TRAIN), ("val", VAL):
        for (path, _), image in zip(listed, IMAGES):
            write_image(tmp_path / part / path, image)
    return tmp_path


class TestILSVRC12(DataFlowContract):
    length = 2

    @pytest.fixture(autouse=True)
    def files(self, folder):
        self.folder = folder

    def make_flow(self):
        return ILSVRC12(self.folder, "train", self.folder / "ilsvrc_metadata", shuffle=False)


class TestILSVRC12Files(TestILSVRC12):
    def make_flow(self):
        return ILSVRC12Files(self.folder, "val", str(self.folder / "ilsvrc_metadata"))


def test_images_are_in_bgr_and_training_data_is_shuffled(folder):
    with change_env("TENSORPACK_DATASET", str(folder)):
        train, val = ILSVRC12(folder, "train"), ILSVRC12(str(folder), "val")
        files = ILSVRC12Files(folder, "val")
    assert (train.shuffle, val.shuffle, files.shuffle) == (True, False, False)
    for (image, label), expected, (_, number) in zip(val, IMAGES, VAL):
        assert type(label) is int and label == number
        np.testing.assert_array_equal(image, expected)
    assert list(files) == [[str(folder / "val" / path), label] for path, label in VAL]
    write_image(folder / "val" / VAL[1][0], IMAGES[1][:, :, 0])  # grey
    np.testing.assert_array_equal(list(val)[1][0], IMAGES[1][:, :, [0, 0, 0]])


def test_validation_images_in_a_folder_for_each_class(folder):
    meta_dir = folder / "ilsvrc_metadata"
    root = folder / "other"
    for (path, label), image in zip(VAL, IMAGES):
        write_image(root / "val" / SYNSETS[label] / path, image)
    assert ILSVRCMeta.guess_dir_structure(root / "val") == "train"
    assert ILSVRCMeta.guess_dir_structure(str(folder / "val")) == "original"
    guessed = list(ILSVRC12(root, "val", meta_dir))
    np.testing.assert_array_equal(guessed[1][0], IMAGES[1])
    assert len(list(ILSVRC12(root, "val", meta_dir, None, "train"))) == 2
    with pytest.raises(FileNotFoundError, match="first image of the part 'val' .*'original'"):
        ILSVRC12(root, "val", meta_dir, dir_structure="original")
    for part in "train", "val":
        with pytest.raises(FileNotFoundError, match=f"no .*/{part}/n.* of https://image-net.org/"):
            ILSVRC12(root / "empty", part, meta_dir)


def test_a_damaged_image_is_named_or_skipped(folder):
    path = folder / "train" / TRAIN[0][0]
    meta_dir = folder / "ilsvrc_metadata"
    path.write_bytes(b"")
    with pytest.raises(DamagedFile, match=TRAIN[0][0]):
        list(ILSVRC12(folder, "train", meta_dir))
    skipping = ILSVRC12(folder, "train", meta_dir, max_errors=1)
    assert [label for _, label in skipping] == [0]


def test_boxes(folder):
    meta_dir = folder / "ilsvrc_metadata"
    path = folder / "bbox" / "n01440764" / "n01440764_10026.xml"
    path.parent.mkdir(parents=True)
    path.write_text(XML)
    none, box = ILSVRC12.get_training_bbox(folder / "bbox", TRAIN)
    assert none is None and box.dtype == np.float32
    assert box.tolist() == [1, 0, 5, 3.5]
    for include in True, str(folder / "bbox"):
        flow = ILSVRC12(folder, "train", meta_dir, False, None, include)
        boxes = [box.tolist() for _, _, box in flow]
        assert boxes == [[0, 0, 6, 4], [1, 0, 5, 3.5]]
        assert flow.last_file == str(folder / "train" / TRAIN[1][0])
    path.write_text("<annotation/>")
    assert ILSVRC12.get_training_bbox(folder / "bbox", TRAIN) == [None, None]
    path.write_text("<annotation>")
    with pytest.raises(DamagedFile, match=f"{path} is not an XML file with boxes: "):
        ILSVRC12.get_training_bbox(folder / "bbox", TRAIN)
    with pytest.raises(ValueError, match="Only the part 'train' has boxes"):
        ILSVRC12(folder, "val", meta_dir, include_bb=True)
    with pytest.raises(NotADirectoryError, match="no folder nowhere with boxes"):
        ILSVRC12(folder, "train", meta_dir, include_bb="nowhere")


def test_names_and_lists(tmp_path, folder):
    meta = ILSVRCMeta(folder / "ilsvrc_metadata")
    assert meta.get_synset_1000() == dict(enumerate(SYNSETS))
    assert meta.get_synset_words_1000()[2] == "n02119789 fish, number 2"
    assert meta.get_image_list("train") == meta.get_image_list("train", "train") == TRAIN
    assert meta.get_image_list("val") == VAL
    assert meta.get_image_list("val", "train")[0] == ("n02119789/ILSVRC2012_val_00000001.JPEG", 2)
    with pytest.raises(ValueError, match="'train', 'val' and 'test', not 'extra'"):
        meta.get_image_list("extra")
    (folder / "ilsvrc_metadata" / "caffe_ilsvrc12.tar.gz").unlink()  # it has been unpacked
    assert meta.get_image_list("val") == VAL
    with pytest.raises(FileNotFoundError, match="ILSVRCMeta needs .*put http://.*/caffe_ilsvrc12"):
        ILSVRCMeta(tmp_path / "empty").get_synset_1000()


def test_the_mean_image(tmp_path):
    mean = np.random.RandomState(0).uniform(0, 255, (3, 256, 256))
    path = tmp_path / "imagenet_mean.binaryproto"
    path.write_bytes(mean_image(mean))
    meta = ILSVRCMeta(tmp_path)
    got = meta.get_per_pixel_mean()
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, mean.transpose(1, 2, 0), rtol=1e-6)
    np.testing.assert_array_equal(meta.get_per_pixel_mean((4, 6)), cv2.resize(got, (6, 4)))
