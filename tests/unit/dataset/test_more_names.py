"""MindSpore's further transforms, stages, settings and sources."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps

import msc
import msc.dataset as ds
from msc.dataset import vision
from msc.dataset.config import ErrorSamplesMode
from msc.dataset.runs import EpochRun, at_row, drawing

DRAWS = np.random.default_rng(2)
PICTURES = [
    DRAWS.integers(0, 256, (11, 9, 3), dtype=np.uint8),
    DRAWS.integers(40, 120, (12, 10, 3), dtype=np.uint8),
    np.full((4, 5, 3), 77, np.uint8),
]


def test_enhancements_are_those_of_pillow() -> None:
    """MindSpore's values for these were compared once; Pillow's differ from them by one at most."""
    for picture in PICTURES:
        image = Image.fromarray(picture)
        pairs: list[tuple[Any, Any]] = [
            (vision.AutoContrast(), ImageOps.autocontrast(image)),
            (vision.AutoContrast(10.0), ImageOps.autocontrast(image, 10)),
            (vision.Posterize(3), ImageOps.posterize(image, 3)),
            (vision.Solarize((100, 255)), ImageOps.solarize(image, 100)),
            (vision.AdjustSharpness(2.0), ImageEnhance.Sharpness(image).enhance(2.0)),
            (vision.RandomSharpness((0.3, 0.3)), ImageEnhance.Sharpness(image).enhance(0.3)),
            (vision.RandomColor((1.6, 1.6)), ImageEnhance.Color(image).enhance(1.6)),
            (vision.RandomGrayscale(1.0), ImageOps.grayscale(image).convert("RGB")),
        ]
        for transform, expected in pairs:
            difference = np.abs(transform(picture).astype(int) - np.asarray(expected, int))
            assert difference.max() <= 1, transform


def test_values_of_mindspore() -> None:
    """What MindSpore 2.10 gives."""
    line = np.array([[[44], [92], [93], [102], [109], [115], [0], [255]]], np.uint8)
    assert vision.AdjustGamma(0.5, 1.1)(line).reshape(-1)[:6].tolist() == [116, 169, 170, 178, 184, 189]
    assert vision.AdjustBrightness(1.5)(np.array([[1, 3, 5, 7]], np.uint8)).tolist() == [[2, 4, 8, 10]]
    steps = np.array([[0, 0, 1, 1], [2, 2, 2, 9]], np.uint8)
    assert vision.Equalize()(steps).tolist() == [[0, 0, 85, 85], [212, 212, 212, 255]]
    patches = vision.SlicePatches(2, 2)(np.arange(15, dtype=np.uint8).reshape(3, 5))
    assert patches[3].tolist() == [[13, 14, 0], [0, 0, 0]]
    padded = vision.NormalizePad([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])(np.full((1, 1, 3), 3, np.uint8))
    assert padded[0, 0].tolist() == [2.0, 0.5, 0.0, 0.0]
    same = vision.LinearTransformation(np.eye(4), np.zeros(4))(np.arange(4.0).reshape(2, 2))
    assert same.tolist() == [[0, 1], [2, 3]]
    blurred = vision.GaussianBlur(3, 1.0)(np.full((4, 4), 9, np.uint8))
    assert (blurred == 9).all()
    assert (vision.ResizedCrop(1, 1, 2, 2, (2, 2))(PICTURES[0]) == PICTURES[0][1:3, 1:3]).all()


def test_random_forms_draw_within_their_ranges() -> None:
    everything: list[Any] = [
        vision.RandomPosterize((2, 4)),
        vision.RandomSolarize((30, 200)),
        vision.RandomEqualize(0.5),
        vision.RandomAutoContrast(prob=0.5),
        vision.RandomInvert(),
        vision.RandomAdjustSharpness(2.0),
        vision.RandomLighting(0.5),
        vision.RandomResize(5),
        vision.RandomSelectSubpolicy([[(vision.RandomInvert(1.0), 0.5)], [(vision.RandomVerticalFlip(1.0), 1.0)]]),
        vision.UniformAugment([vision.Invert(), vision.Equalize(), vision.AutoContrast()], 2),
    ]
    for transform in everything:
        found: set[bytes] = set()
        for k in range(24):
            with drawing(EpochRun(3)):
                at_row(k)
                found.add(transform(PICTURES[0]).tobytes())
        assert len(found) > 1, transform


def test_mixed_batches() -> None:
    images = np.stack([np.full((4, 6, 3), k, np.float32) for k in range(5)])
    labels = np.eye(5, dtype=np.int32)
    for transform in (vision.MixUpBatch(0.7), vision.CutMixBatch(vision.ImageBatchFormat.NHWC, 0.7)):
        with drawing(EpochRun(1)):
            mixed, shares = transform(images, labels)
        assert mixed.shape == images.shape
        np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-6)
        np.testing.assert_allclose(mixed.mean((1, 2, 3)), shares @ np.arange(5), rtol=1e-5, atol=1e-6)
    with pytest.raises(msc.MscError, match="images of rank 4"):
        vision.MixUpBatch()(images[0], labels)


def test_batches_of_rows_of_similar_length() -> None:
    rows = [(np.arange(n, dtype=np.int32),) for n in (1, 5, 2, 6, 3, 9)]
    data = ds.GeneratorDataset(rows, ["x"], shuffle=False)
    bucketed = data.bucket_batch_by_length(["x"], [4, 8], [2, 2, 1])
    shapes = [list(row[0].shape) for row in bucketed.create_tuple_iterator(num_epochs=1)]
    assert shapes == [[2, 2], [2, 6], [1, 9], [1, 3]]
    assert bucketed.get_dataset_size() == 4
    to_boundary = data.take(5).bucket_batch_by_length(["x"], [4, 8], [2, 2, 1], None, {"x": ([None], -1)}, True, True)
    assert [r[0].tolist()[0] for r in to_boundary.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [
        [0, -1, -1],
        [0, 1, 2, 3, 4, -1, -1],
    ]
    with pytest.raises(msc.MscError, match="one size more than boundaries"):
        data.bucket_batch_by_length(["x"], [4, 8], [2, 2])


def test_rows_that_wait() -> None:
    told: list[Any] = []
    data = ds.NumpySlicesDataset(np.arange(4), ["x"], shuffle=False).sync_wait("policy", 1, told.append)
    reader = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    for k in range(4):
        assert int(next(reader)[0]) == k
        data.sync_update("policy", data=k)
    assert told == [0, 1, 2, 3]
    with pytest.raises(msc.MscError, match="condition_name is 'other'"):
        data.sync_update("other")
    ds.config.set_callback_timeout(1)
    try:
        with pytest.raises(msc.MscError, match="nobody called sync_update") as error:
            list(data.rows(EpochRun(1)))
        assert error.value.diagnostics[0].code == "MSC1312"
    finally:
        ds.config.set_callback_timeout(60)


def test_saved_rows_come_back(tmp_path: Path) -> None:
    names = {"x": np.arange(6, dtype=np.float32).reshape(3, 2), "label": np.arange(3, dtype=np.uint8)}
    data = ds.NumpySlicesDataset({**names, "word": np.array(["a", "bc", "d"])}, shuffle=False)
    data.save(str(tmp_path / "saved"), 1)
    found = ds.MindDataset(str(tmp_path / "saved"), shuffle=False)
    rows = list(found.create_dict_iterator(num_epochs=1, output_numpy=True))
    assert [str(row["word"]) for row in rows] == ["a", "bc", "d"]
    assert [int(row["label"]) for row in rows] == [0, 1, 2]
    assert np.array_equal(np.stack([row["x"] for row in rows]), names["x"])


def test_rows_with_errors(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A damaged file, and a function that fails: returned, left out, or replaced, and told by name."""
    folder = tmp_path / "class"
    folder.mkdir()
    for k in range(4):
        Image.fromarray(np.full((4, 4, 3), k * 10, np.uint8)).save(folder / f"{k}.png")
    (folder / "1.png").write_bytes(b"no image")

    def fails(image: Any) -> Any:
        if image[0, 0, 0] == 20:
            raise ValueError("not this one")
        return image

    def read() -> list[int]:
        data = ds.ImageFolderDataset(str(tmp_path), shuffle=False, decode=True).map(fails, "image")
        data = data.map(vision.HorizontalFlip(), "image").batch(1)
        return [int(row[0][0, 0, 0, 0]) for row in data.rows(EpochRun(1))]

    with pytest.raises(msc.MscError, match=r"1\.png"):
        read()
    try:
        ds.config.set_error_samples_mode(ErrorSamplesMode.SKIP)
        assert read() == [0, 30]
        told = capfd.readouterr().err
        assert "MSC1313" in told
        assert "1.png cannot be decoded" in told
        assert "not this one" in told
        ds.config.set_error_samples_mode(ErrorSamplesMode.REPLACE)
        assert read() == [0, 0, 0, 30]
    finally:
        ds.config.set_error_samples_mode(ErrorSamplesMode.RETURN)


def test_files_are_read_by_threads_in_their_order(tmp_path: Path) -> None:
    folder = tmp_path / "class"
    folder.mkdir()
    for k in range(12):
        Image.fromarray(np.full((4, 4, 3), k * 10, np.uint8)).save(folder / f"{k:02}.png")
    data = ds.ImageFolderDataset(str(tmp_path), shuffle=False, decode=True, num_parallel_workers=3)
    assert [int(row[0][0, 0, 0]) for row in data.rows(EpochRun(1))] == [k * 10 for k in range(12)]
    (folder / "05.png").write_bytes(b"no image")
    rows = data.rows(EpochRun(1))
    assert [int(next(rows)[0][0, 0, 0]) for _ in range(5)] == [0, 10, 20, 30, 40]
    with pytest.raises(msc.MscError, match=r"05\.png"):
        next(rows)


def test_texts_in_folders(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text('1,"a, b"\n2,c\n')
    (tmp_path / "wiki.valid.tokens").write_text("one\n\ntwo\n")
    reviews = ds.YelpReviewDataset(str(tmp_path), "train", shuffle=False)
    rows = [[str(value) for value in row] for row in reviews.rows(EpochRun(1))]
    assert rows == [["1", "a, b"], ["2", "c"]]
    lines = ds.WikiTextDataset(str(tmp_path), shuffle=False)
    assert [str(row[0]) for row in lines.rows(EpochRun(1))] == ["one", "two"]
    with pytest.raises(msc.MscError, match="there is no file"):
        ds.AGNewsDataset(str(tmp_path), "test")
    with pytest.raises(msc.MscError, match="usage is 'dev'"):
        ds.AGNewsDataset(str(tmp_path), "dev")


def test_numbers_of_a_table_are_read_in_blocks(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,0.5\n2,\n3,1.5\n")
    table = ds.CSVDataset(str(path), column_defaults=[0, 9.0], shuffle=False)
    (batch,) = table.batch(3).rows(EpochRun(1))
    assert (batch[0].tolist(), batch[1].tolist(), table.in_blocks) == ([1, 2, 3], [0.5, 9.0, 1.5], True)


def test_pictures_are_read(tmp_path: Path) -> None:
    Image.fromarray(PICTURES[0]).save(tmp_path / "x.png")
    assert np.array_equal(vision.read_image(str(tmp_path / "x.png")), PICTURES[0])
    grey = vision.read_image(str(tmp_path / "x.png"), vision.ImageReadMode.GRAYSCALE)
    assert grey.shape == (11, 9, 1)
    with pytest.raises(msc.MscError, match="cannot be read"):
        vision.read_image(str(tmp_path / "y.png"))


def test_other_names() -> None:
    rows = ds.PaddedDataset([{"x": np.float32(1)}, {"x": np.float32(2)}])
    joined = ds.NumpySlicesDataset({"x": np.zeros(2, np.float32)}, shuffle=False) + rows
    assert [float(row[0]) for row in joined.create_tuple_iterator(num_epochs=1)] == [0, 0, 1, 2]
    assert ds.DatasetCache(1).get_stat()["num_mem_cached"] == 0
    assert import_module("msc.dataset.vision.transforms").RandomCrop is vision.RandomCrop
    assert import_module("msc.dataset.text.transforms").Vocab is ds.text.Vocab
    assert import_module("msc.mindrecord").FileWriter.__name__ == "FileWriter"
    assert issubclass(ds.FashionMnistDataset, ds.MnistDataset)
    assert isinstance(rows.batch(2), ds.BatchDataset)
    assert ds.config.get_enable_shared_mem() is True
    ds.config.set_numa_enable(False)
    with pytest.raises(msc.MscError, match="numa_enable"):
        ds.config.set_numa_enable("yes")
