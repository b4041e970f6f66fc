"""Transforms over blocks of rows: compiled, on whole blocks and row by row they give the same rows."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

import msc
import msc.dataset as ds
from msc.dataset import pictures, transforms, vision
from msc.dataset.runs import EpochRun
from msc.dataset.vision.decoding import OpenPicture, decoded
from msc.frontend.modes import INTERPRETER, Wishes
from tests.random_pipelines.compiled import TransformedPictures, TransformedTexts

IMAGES = np.random.default_rng(0).integers(0, 256, (21, 12, 10, 3), np.uint8)


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_pipelines_in_all_ways(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "WISHES", Wishes(INTERPRETER))
    for seed in range(first, first + 10):
        TransformedPictures(seed).check()
        TransformedTexts(seed).check()
        TransformedPictures(seed).check_shards(seed % 4 + 1)


def data(offload: bool | None, batch: int = 8) -> ds.Dataset:
    found = ds.NumpySlicesDataset({"image": IMAGES, "label": np.arange(21, dtype=np.uint8)}, shuffle=False)
    steps = [vision.RandomCrop(14, 4), vision.Resize((9, 7)), vision.RandomHorizontalFlip(), vision.HWC2CHW()]
    found = found.map(transforms.Compose([*steps, vision.Rescale(1 / 255, -0.5)]), "image", offload=offload)
    return found.map(transforms.TypeCast(msc.int32), "label").batch(batch)


def rows(dataset: ds.Dataset, start: int = 0) -> list[Any]:
    return list(dataset.rows(EpochRun(1), start))


def test_compiled_rows_are_those_of_the_transforms() -> None:
    compiled = data(True)
    for found, expected in zip(rows(compiled), rows(data(False)), strict=True):
        for value, right in zip(found, expected, strict=True):
            assert value.dtype == right.dtype
            assert np.array_equal(value, right)
    assert [len(batch[0]) for batch in rows(compiled, 1)] == [8, 5]
    assert "compiled, for blocks of 8" in compiled.explain()
    assert "label: TypeCast: the whole block at once" in compiled.explain()


def test_it_is_compiled_once_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msc.dataset.blocks.PAYS", 8 * 3 * 9 * 7)
    monkeypatch.setattr(pictures, "WISHES", Wishes(INTERPRETER))
    found = data(None)
    reader = found.rows(EpochRun(1))
    next(reader)
    assert "row by row until" in found.explain()
    next(reader)
    assert "compiled" in found.explain().splitlines()[1]


def test_what_is_not_compiled_is_told() -> None:
    """A function of Python, a way to resize, and a picture that is changed in floating point."""
    images = ds.NumpySlicesDataset({"image": IMAGES}, shuffle=False)
    for functions, words in (
        ([vision.Resize((4, 4), vision.Inter.AREA)], "it resizes by AREA"),
        ([lambda image: image], "row by row"),
        ([vision.Rescale(2.0, 0.0), vision.AdjustContrast(0.5)], "it has no form over blocks"),
    ):
        mapped = images.map(functions, "image", offload=True).batch(4)
        rows(mapped)
        assert words in mapped.explain()
    with pytest.raises(msc.MscError, match="offload is 1"):
        images.map(vision.Invert(), "image", offload=1)  # pyright: ignore[reportArgumentType]


def test_a_picture_that_does_not_fit_is_told_of_its_row() -> None:
    with pytest.raises(msc.MscError, match="RandomCrop: the image"):
        rows(ds.NumpySlicesDataset({"x": IMAGES}).map(vision.RandomCrop(40), "x", offload=True).batch(4))
    ragged = [np.zeros((k + 4, 5, 1), np.uint8) for k in range(5)]
    source = ds.GeneratorDataset([(image,) for image in ragged], ["x"], shuffle=False)
    (whole,) = rows(source.map([vision.Resize((3, 3)), vision.HWC2CHW()], "x", offload=True).batch(5))
    assert whole[0].shape == (5, 1, 3, 3)


def files_of(count: int, kind: str = "JPEG") -> list[Any]:
    """Picture files of different sizes."""
    draws, found = np.random.default_rng(1), list[Any]()
    for k in range(count):
        file = io.BytesIO()
        Image.fromarray(draws.integers(0, 256, (20 + k, 30 - k, 3), np.uint8)).save(file, kind)
        found.append((np.frombuffer(file.getvalue(), np.uint8),))
    return found


def test_pictures_in_files_are_compiled_and_a_damaged_one_is_told() -> None:
    """Files of different sizes to one size, by code of C; with a damaged one the error is that of its row."""
    steps = [vision.RandomCropDecodeResize((9, 7)), vision.RandomHorizontalFlip(), vision.Rescale(1 / 255, -0.5)]
    files = files_of(6)

    def made(rows_of: Any, offload: bool) -> ds.Dataset:
        source = ds.GeneratorDataset(rows_of, ["x"], shuffle=False)
        return source.map([*steps, vision.HWC2CHW()], "x", offload=offload).batch(4)

    compiled = made(files, True)
    pairs = zip(rows(compiled), rows(made(files, False)), strict=True)
    assert all(np.array_equal(found[0], right[0]) for found, right in pairs)
    assert "HWC2CHW: compiled, for pictures of any size" in compiled.explain()
    damaged = [*files[:3], (files[3][0][:-200],), *files[4:]]
    for offload in (True, False):
        with pytest.raises(msc.MscError, match="an image cannot be decoded"):
            rows(made(damaged, offload))


def test_rows_of_a_jpeg_down_to_one() -> None:
    """Whatever its colours, sampling, order of scans and marks: the rows are Pillow's, and a damaged one is noticed."""
    pytest.importorskip("simplejpeg")
    draws = np.random.default_rng(3)
    for sampling, progressive, restarts in ((0, False, 0), (1, False, 0), (2, False, 0), (2, True, 0), (2, False, 2)):
        for form in ("RGB", "L"):
            picture, file = Image.fromarray(draws.integers(0, 256, (75, 33, 3), np.uint8)).convert(form), io.BytesIO()
            words: dict[str, Any] = {"subsampling": sampling} if form == "RGB" else {}
            picture.save(file, "JPEG", progressive=progressive, restart_marker_blocks=restarts, **words)
            right = np.asarray(Image.open(file).convert("RGB"))
            data = np.frombuffer(file.getvalue(), np.uint8)
            for bottom in (1, 15, 16, 17, 40, 64, 75):
                found = np.zeros(75 * 33 * 3, np.uint8)
                OpenPicture(data, is_file=True).read((0, 0, 33, bottom), found)
                rows_read = found.reshape(75, 33, 3)[:bottom]
                assert np.array_equal(rows_read, right[:bottom]), (sampling, progressive, restarts, form, bottom)
            with pytest.raises(msc.MscError, match="cannot be decoded"):
                OpenPicture(data[: len(data) // 2], is_file=True).read((0, 0, 33, 72), found)


@pytest.mark.parametrize("form", ["RGB", "L", "CMYK"])
def test_simplejpeg_gives_the_bytes_of_pillow(form: str) -> None:
    pytest.importorskip("simplejpeg")
    draws = np.random.default_rng(2)
    for quality, sampling in ((95, 0), (75, 2), (30, 1)):
        picture, file = Image.fromarray(draws.integers(0, 256, (33, 21, 3), np.uint8)).convert(form), io.BytesIO()
        picture.save(file, "JPEG", quality=quality, **({"subsampling": sampling} if form == "RGB" else {}))
        found = decoded(np.frombuffer(file.getvalue(), np.uint8))
        assert np.array_equal(found, np.asarray(Image.open(file).convert("RGB")))


def test_rows_of_stages_with_a_reader_are_those_of_stages_without() -> None:
    """Shuffled, cut and transformed rows that are taken by their numbers, in batches and one after the other."""

    def made(source: ds.Dataset) -> ds.Dataset:
        return source.map(vision.RandomCrop(9, 2), "image").shuffle(5).skip(2).map(vision.RandomVerticalFlip(), "image")

    by_number = made(ds.NumpySlicesDataset({"image": IMAGES}, shuffle=False))
    one_by_one = made(ds.GeneratorDataset([(image,) for image in IMAGES], ["image"], shuffle=False))
    assert (by_number.in_blocks, one_by_one.in_blocks) == (True, False)
    for found, other in ((by_number, one_by_one), (by_number.take(40), one_by_one.take(40))):
        pairs = zip(rows(found), rows(other), strict=True)
        assert all(np.array_equal(row[0], right[0]) for row, right in pairs)
    expected = [row[0] for row in rows(one_by_one.batch(1))]
    (batch,) = rows(by_number.batch(4), 4)
    assert np.array_equal(batch[0], np.concatenate(expected[16:]))
