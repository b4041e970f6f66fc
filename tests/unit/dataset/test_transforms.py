"""Transforms of images, data and texts: their formulas, and what they say of mistakes."""

from __future__ import annotations

import colorsys
from typing import Any

import numpy as np
import pytest
from PIL import Image

import msc
from msc.dataset import text, transforms, vision
from msc.dataset.runs import EpochRun, at_row, drawing

PICTURE = np.random.default_rng(1).integers(0, 256, (7, 9, 3), dtype=np.uint8)


def test_resizing_as_pillow_does() -> None:
    """Enlarging interpolates between the same pixels; Pillow's arithmetic rounds otherwise, by one at most."""
    for size in ((14, 18), (9, 31)):
        expected = np.asarray(Image.fromarray(PICTURE).resize(size[::-1], Image.Resampling.BILINEAR), np.int64)
        found = vision.Resize(size)(PICTURE)
        assert np.abs(found - expected).max() <= 1
    methods = ((vision.Inter.PILCUBIC, Image.Resampling.BICUBIC), (vision.Inter.ANTIALIAS, Image.Resampling.LANCZOS))
    for method, of_pillow in methods:
        small = vision.Resize((4, 4), method)(PICTURE)
        expected = np.asarray(Image.fromarray(PICTURE).resize((4, 4), of_pillow), np.int64)
        assert np.abs(small - expected).max() <= 1
    assert vision.Resize(14)(PICTURE).shape == (14, 18, 3)
    assert vision.Resize(14)(Image.fromarray(PICTURE)).size == (18, 14)
    flat = np.full((5, 6), 7.5, np.float32)
    for method in vision.Inter:
        np.testing.assert_allclose(vision.Resize((3, 11), method)(flat), 7.5, rtol=1e-6)
    area = vision.Resize((1, 1), vision.Inter.AREA)(np.array([[0.0, 1.0], [2.0, 3.0]]))
    assert area.tolist() == [[1.5]]
    assert vision.Resize((4, 4), vision.Inter.NEAREST)(np.array([[1, 2], [3, 4]], np.uint8))[0].tolist() == [1, 1, 2, 2]


def test_pixels() -> None:
    np.testing.assert_allclose(vision.Rescale(1 / 255, -0.5)(PICTURE), PICTURE / 255 - 0.5, rtol=1e-5, atol=1e-6)
    mean, std = [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]
    np.testing.assert_allclose(vision.Normalize(mean, std)(PICTURE), (PICTURE - np.array(mean)) / std, rtol=1e-5)
    front = vision.HWC2CHW()(PICTURE)
    assert front.shape == (3, 7, 9)
    np.testing.assert_allclose(vision.Normalize(mean, std, is_hwc=False)(front)[1], (front[1] - 2.0) / 5.0, rtol=1e-5)
    assert vision.ToTensor()(PICTURE).max() <= 1
    assert vision.ToTensor()(PICTURE[..., 0]).shape == (1, 7, 9)
    assert (vision.Invert()(PICTURE) == 255 - PICTURE).all()
    assert (vision.AdjustBrightness(0.0)(PICTURE) == 0).all()
    assert (vision.AdjustContrast(1.0)(PICTURE) == PICTURE).all()
    grey = vision.Grayscale()(PICTURE)
    assert np.abs(grey.astype(int) - np.asarray(Image.fromarray(PICTURE).convert("L"), int)).max() <= 1
    assert (vision.AdjustSaturation(0.0)(PICTURE)[..., 2] == grey).all()
    assert (vision.ConvertColor(vision.ConvertMode.COLOR_RGB2BGR)(PICTURE) == PICTURE[..., ::-1]).all()
    assert np.asarray(vision.ToPIL()(PICTURE)).shape == PICTURE.shape


@pytest.mark.parametrize("turn", [-0.5, -0.2, 0.0, 0.1, 0.37, 0.5])
def test_hues_are_turned_as_in_hsv(turn: float) -> None:
    picture = np.concatenate([PICTURE, np.repeat(PICTURE[..., :1], 3, 2), np.zeros((1, 9, 3), np.uint8)])

    def turned(pixel: Any) -> list[float]:
        hue, saturation, value = colorsys.rgb_to_hsv(*map(float, pixel))
        return [*colorsys.hsv_to_rgb((hue + turn) % 1, saturation, value)]

    expected = np.apply_along_axis(turned, 2, picture)
    found = vision.AdjustHue(turn)(picture)
    assert found.dtype == np.uint8
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.5 + 1e-9)
    scaled = vision.AdjustHue(turn)(picture.astype(np.float32) / 255)
    np.testing.assert_allclose(scaled, expected / 255, rtol=1e-5, atol=1e-6)
    pillow = np.array(Image.fromarray(picture).convert("HSV"))
    pillow[..., 0] += np.uint8(round(turn * 255) % 256)
    near = np.asarray(Image.fromarray(pillow, "HSV").convert("RGB"), int)
    assert np.abs(found - near).max() <= 14  # Pillow has 256 hues, a step of 6 apart, and rounds down
    assert np.abs(found - near).mean() < 2
    assert (vision.AdjustHue(turn)(PICTURE[..., 0]) == PICTURE[..., 0]).all()


def test_random_hues_are_within_their_range() -> None:
    red = np.full((1, 1, 3), [1.0, 0.0, 0.0], np.float32)
    hues = [colorsys.rgb_to_hsv(*vision.RandomColorAdjust(hue=(0.1, 0.3))(red)[0, 0])[0] for _ in range(50)]
    assert 0.1 <= min(hues) < 0.15 < 0.25 < max(hues) <= 0.3
    for wrong in (0.6, (-0.6, 0), (0.2, 0.1), "red"):
        with pytest.raises(msc.MscError, match="RandomColorAdjust: hue is"):
            vision.RandomColorAdjust(hue=wrong)


def test_parts_and_turns() -> None:
    assert (vision.HorizontalFlip()(PICTURE) == PICTURE[:, ::-1]).all()
    assert (vision.VerticalFlip()(PICTURE) == PICTURE[::-1]).all()
    assert (vision.CenterCrop(3)(PICTURE) == PICTURE[2:5, 3:6]).all()
    assert vision.CenterCrop((9, 3))(PICTURE)[0].max() == 0
    assert (vision.Crop((1, 2), (3, 4))(PICTURE) == PICTURE[1:4, 2:6]).all()
    assert (vision.Pad((1, 2))(PICTURE) == np.pad(PICTURE, ((2, 2), (1, 1), (0, 0)))).all()
    edged = vision.Pad(1, padding_mode=vision.Border.EDGE)(PICTURE)
    assert (edged == np.pad(PICTURE, ((1, 1), (1, 1), (0, 0)), "edge")).all()
    square = PICTURE[:, :7]
    assert (vision.Rotate(90)(square) == np.rot90(square)).all()
    assert (vision.Rotate(90, expand=True)(PICTURE) == np.rot90(PICTURE)).all()
    assert (vision.Rotate(0, vision.Inter.LINEAR)(PICTURE) == PICTURE).all()
    assert (vision.RandomAffine(0)(PICTURE) == PICTURE).all()
    moved = vision.RandomAffine(0, translate=(2 / 9, 2 / 9, 0, 0))(PICTURE)
    assert (moved[:, 2:] == PICTURE[:, :-2]).all()


def test_random_transforms_are_those_of_the_row() -> None:
    everything: list[Any] = [
        vision.RandomCrop(5, padding=1),
        vision.RandomResizedCrop(4),
        vision.RandomRotation(30, vision.Inter.LINEAR),
        vision.RandomAffine(10, (0.1, 0.1), (0.8, 1.2), 5),
        vision.RandomColorAdjust(0.5, 0.5, (0.5, 2.0), 0.5),
        vision.RandomErasing(1.0),
        vision.CutOut(3),
        transforms.RandomChoice([vision.HorizontalFlip(), vision.VerticalFlip()]),
        transforms.RandomOrder([vision.HorizontalFlip(), vision.Resize((3, 4))]),
        transforms.RandomApply([vision.HorizontalFlip()]),
        vision.RandomVerticalFlip(),
    ]

    def made(seed: int, row: int) -> list[Any]:
        with drawing(EpochRun(seed)):
            at_row(row)
            return [transform(PICTURE) for transform in everything]

    def same(first: list[Any], second: list[Any]) -> bool:
        return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))

    assert same(made(1, 2), made(1, 2))
    assert not same(made(1, 2), made(1, 3))
    assert not same(made(1, 2), made(2, 2))


def test_general_transforms() -> None:
    assert transforms.TypeCast(msc.float16)([1, 2]).dtype == np.float16
    assert transforms.OneHot(3)(np.array([2])).tolist() == [[0, 0, 1]]
    np.testing.assert_allclose(transforms.OneHot(2, 0.1)(np.array(1)), [0.05, 0.95], rtol=1e-6)
    assert transforms.PadEnd([3], 9)(np.array([1])).tolist() == [1, 9, 9]
    assert transforms.Slice(slice(1, 3))(np.arange(5)).tolist() == [1, 2]
    assert transforms.Mask(transforms.Relational.GT, 2)(np.array([1, 3])).tolist() == [False, True]
    assert transforms.Concatenate(append=np.array([5]))(np.array([1])).tolist() == [1, 5]
    assert transforms.Fill(3)(np.zeros(2)).tolist() == [3, 3]
    assert [part.tolist() for part in transforms.Unique()(np.array([4, 4, 2]))] == [[2, 4], [1, 1, 0], [1, 2]]
    assert [part.tolist() for part in transforms.Duplicate()(np.array([1]))] == [[1], [1]]
    assert transforms.Compose([transforms.Duplicate(), lambda a, b: a + b])(np.array([2])).tolist() == [4]


def test_words() -> None:
    vocab = text.Vocab.from_list(["un", "##able", "able", "dog"], ["[UNK]"])
    assert text.Lookup(vocab, "[UNK]")(np.array(["dog", "cat"])).tolist() == [4, 0]
    assert text.BertTokenizer(vocab, lower_case=True)("Unable dog! ünable").tolist() == [
        *("un", "##able", "dog", "[UNK]", "un", "##able")
    ]
    assert vocab.tokens_to_ids(["able", "x"]) == [3, -1]
    assert vocab.ids_to_tokens(4) == "dog"
    assert len(vocab) == 5
    assert text.BasicTokenizer()("a,b [CLS]").tolist() == ["a", ",", "b", "[CLS]"]
    assert text.UnicodeCharTokenizer()("ab").tolist() == ["a", "b"]
    assert text.RegexTokenizer(r"\s|,", ",")("a b,c").tolist() == ["a", "b", ",", "c"]
    assert text.RegexReplace("b+", "x")("abbc") == "axc"
    assert text.CaseFold()("AB") == "ab"
    assert text.NormalizeUTF8()("ﬁ") == "fi"
    assert text.ToNumber(msc.float32)(np.array(["1.5"])).tolist() == [1.5]
    assert text.Ngram(2)(np.array(["a", "b", "c"])).tolist() == ["a b", "b c"]
    assert text.SlidingWindow(2)(np.arange(3)).tolist() == [[0, 1], [1, 2]]
    assert text.Truncate(1)(np.arange(3)).tolist() == [0]
    assert [p.tolist() for p in text.TruncateSequencePair(3)(np.arange(3), np.arange(2))] == [[0, 1], [0]]
    assert text.PythonTokenizer(lambda line: line.split("-"))("a-b").tolist() == ["a", "b"]


def test_a_vocabulary_of_data() -> None:
    import msc.dataset as ds

    data = ds.NumpySlicesDataset({"t": ["b", "a", "b", "c"]}, shuffle=False)
    assert text.Vocab.from_dataset(data, "t", top_k=2, special_tokens=["<pad>"]).vocab() == {"<pad>": 0, "b": 1, "a": 2}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: vision.Resize(0), "Resize: size is 0"),
        (lambda: vision.Resize((2, 2), "linear"), "a member of vision.Inter"),
        (lambda: vision.Resize(2)(np.zeros(3)), "float64 of shape"),
        (lambda: vision.Resize(2)("a"), "an image"),
        (lambda: vision.RandomCrop(20)(PICTURE), "at least"),
        (lambda: vision.RandomHorizontalFlip(2), "prob is 2"),
        (lambda: vision.Normalize([1.0], [0.0]), "numbers above 0"),
        (lambda: vision.Normalize([1.0, 2.0], [1.0, 2.0])(PICTURE), "one of 3 channels"),
        (lambda: vision.Crop((5, 5), 4)(PICTURE), "inside it"),
        (lambda: vision.Decode()(PICTURE), "from the bytes of a file"),
        (lambda: transforms.OneHot(2)(np.array([2])), "a class is 2"),
        (lambda: transforms.Compose([]), "a list of functions"),
        (lambda: transforms.PadEnd([2])(np.zeros((1, 1))), "rank is 2"),
        (lambda: text.Lookup(text.Vocab.from_list(["a"]))(np.array(["b"])), "a word is 'b'"),
        (lambda: text.Vocab.from_list(["a", "a"]), "comes twice"),
        (lambda: text.CaseFold()(np.zeros(1)), "it takes strings"),
        (lambda: text.ToNumber(msc.int32)(np.array(["x"])), "numbers of type int32"),
    ],
)
def test_mistakes(wrong: Any, words: str) -> None:
    with pytest.raises(msc.MscError, match=words) as error:
        wrong()
    assert error.value.diagnostics[0].code == "MSC0874"
