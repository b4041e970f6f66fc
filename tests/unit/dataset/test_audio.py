"""Transforms of sounds give what MindSpore 2.10 gives: shapes, types, mean sizes and sums with other signs."""

from __future__ import annotations

import sys
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
import msc.dataset as ds
from msc.dataset import audio
from msc.dataset.audio.waves import filtered
from msc.dataset.runs import EpochRun

DRAWS = np.random.default_rng(0)
WAVE = DRAWS.uniform(-1, 1, (2, 150)).astype("f4")
SCOPE = {
    "audio": audio,
    "wave": WAVE,
    "spectrum": DRAWS.uniform(0.1, 2, (2, 9, 12)).astype("f4"),
    "pairs": DRAWS.normal(size=(2, 4, 5, 2)).astype("f4"),
    "codes": DRAWS.integers(0, 256, (2, 40)).astype("i4"),
}
MINDSPORE: dict[str, list[tuple[tuple[int, ...], str, float, float]]] = {
    "Spectrogram(16)(wave)": [((2, 9, 19), "float32", 2.21481, -17.5231)],
    "Spectrogram(16, 10, 4, 2, audio.WindowType.HAMMING, 1.0, True)(wave)": [
        ((2, 9, 39), "float32", 0.522217, -2.16437)
    ],
    "Spectrogram(16, power=0.0)(wave)": [((2, 9, 19, 2), "float32", 0.780464, 2.40774)],
    "Spectrogram(16, center=False, window=audio.WindowType.BLACKMAN, onesided=False)(wave)": [
        ((2, 16, 17), "float32", 1.73292, -3.17786)
    ],
    "Spectrogram(16, window=audio.WindowType.BARTLETT, pad_mode=audio.BorderType.EDGE)(wave)": [
        ((2, 9, 19), "float32", 2.01426, -19.2184)
    ],
    "Spectrogram(16, window=audio.WindowType.KAISER)(wave)": [((2, 9, 19), "float32", 1.48993, -12.1091)],
    "MelScale(5, 16000, 20.0, None, 9)(spectrum)": [((2, 5, 12), "float32", 1.24553, -2.72702)],
    "MelScale(5, 16000, 20.0, 7000.0, 9, audio.NormType.SLANEY, audio.MelType.SLANEY)(spectrum)": [
        ((2, 5, 12), "float32", 0.00093961, -0.00250411)
    ],
    "MelSpectrogram(16000, 16, n_mels=4)(wave)": [((2, 4, 19), "float32", 2.87241, -3.71454)],
    "MFCC(16000, 4, melkwargs={'n_fft': 16, 'n_mels': 6})(wave)": [((2, 4, 19), "float32", 32.5327, -43.303)],
    "AmplitudeToDB()(spectrum)": [((2, 9, 12), "float32", 2.24061, 61.4184)],
    "AmplitudeToDB(audio.ScaleType.MAGNITUDE, 2.0, 1e-3, 10.0)(spectrum)": [((2, 9, 12), "float32", 5.46, 58.0911)],
    "DBToAmplitude(2.0, 0.5)(wave)": [((2, 150), "float32", 2.02335, -1.1478)],
    "SpectralCentroid(16000, 16)(wave)": [((2, 1, 19), "float32", 4188.22, 6088.09)],
    "ComputeDeltas(7)(spectrum)": [((2, 9, 12), "float32", 0.0963996, -1.80081)],
    "ComplexNorm(2.0)(pairs)": [((2, 4, 5), "float32", 1.5912, 13.6907)],
    "Angle()(pairs)": [((2, 4, 5), "float32", 1.36806, 4.64088)],
    "Magphase(2.0)(pairs)": [((2, 4, 5), "float32", 1.5912, 13.6907), ((2, 4, 5), "float32", 1.36806, 4.64088)],
    "MaskAlongAxis(2, 3, 7.0, 1)(spectrum)": [((2, 9, 12), "float32", 3.07085, 13.1113)],
    "TimeMasking(False, 2, 1, 5.0)(spectrum)": [((2, 9, 12), "float32", 1.74308, 36.3946)],
    "FrequencyMasking(False, 3, 2, 5.0)(spectrum)": [((2, 9, 12), "float32", 2.40419, 11.4837)],
    "Gain(3.0)(wave)": [((2, 150), "float32", 0.735057, -2.18303)],
    "Vol(2.0, audio.GainType.POWER)(wave)": [((2, 150), "float32", 0.663347, -2.3419)],
    "Vol(-3.0, audio.GainType.DB)(wave)": [((2, 150), "float32", 0.368401, -1.09411)],
    "Fade(10, 20, audio.FadeShape.LINEAR)(wave)": [((2, 150), "float32", 0.468354, 0.140875)],
    "Fade(10, 20, audio.FadeShape.EXPONENTIAL)(wave)": [((2, 150), "float32", 0.459566, -0.0235867)],
    "Fade(10, 20, audio.FadeShape.LOGARITHMIC)(wave)": [((2, 150), "float32", 0.487775, 0.266116)],
    "Fade(10, 20, audio.FadeShape.QUARTER_SINE)(wave)": [((2, 150), "float32", 0.48057, 0.38828)],
    "Fade(10, 20, audio.FadeShape.HALF_SINE)(wave)": [((2, 150), "float32", 0.467902, 0.378243)],
    "Contrast(60.0)(wave)": [((2, 150), "float32", 0.663016, -2.03485)],
    "DCShift(0.3)(wave)": [((2, 150), "float32", 0.568897, -2.04527)],
    "MuLawEncoding()(wave)": [((2, 150), "int32", 140.78, -377.2)],
    "MuLawDecoding()(codes)": [((2, 40), "float32", 0.179943, 1.21424)],
    "LFilter([1.0, 0.2, -0.3, 0.1], [0.5, 0.4, 0.1, 0.2])(wave)": [((2, 150), "float32", 0.318291, 1.27589)],
    "LFilter([2.0, 0.2], [0.5, 4.0], False)(wave)": [((2, 150), "float32", 1.0244, 5.6483)],
    "Biquad(0.2, 0.1, 0.3, 1.0, -0.4, 0.2)(wave)": [((2, 150), "float32", 0.203298, 2.30696)],
    "LowpassBiquad(16000, 3000.0)(wave)": [((2, 150), "float32", 0.28111, 3.5137)],
    "HighpassBiquad(16000, 3000.0, 0.5)(wave)": [((2, 150), "float32", 0.368357, -2.08778)],
    "BandpassBiquad(16000, 3000.0)(wave)": [((2, 150), "float32", 0.293213, -2.22084)],
    "BandpassBiquad(16000, 3000.0, 0.5, True)(wave)": [((2, 150), "float32", 0.16295, -0.983961)],
    "BandrejectBiquad(16000, 3000.0)(wave)": [((2, 150), "float32", 0.396265, 0.898141)],
    "AllpassBiquad(16000, 3000.0)(wave)": [((2, 150), "float32", 0.472015, 3.54822)],
    "EqualizerBiquad(16000, 3000.0, 5.0)(wave)": [((2, 150), "float32", 0.617488, -3.74047)],
    "BassBiquad(16000, 5.0)(wave)": [((2, 150), "float32", 0.529056, -1.60449)],
    "TrebleBiquad(16000, -5.0)(wave)": [((2, 150), "float32", 0.370756, 0.349761)],
    "Resample(16000, 12000)(wave)": [((2, 113), "float32", 0.389346, -1.47743)],
    "Resample(8000, 12000, audio.ResampleMethod.KAISER_WINDOW)(wave)": [((2, 225), "float32", 0.465095, -10.1206)],
    "melscale_fbanks(9, 10.0, 7000.0, 5, 16000)": [((9, 5), "float32", 0.115297, 1.72002)],
    "linear_fbanks(9, 10.0, 7000.0, 5, 16000)": [((9, 5), "float32", 0.126848, -3.0034)],
    "create_dct(4, 6)": [((6, 4), "float32", 1.4642, 0.309743)],
    "create_dct(4, 6, audio.NormMode.ORTHO)": [((6, 4), "float32", 0.380404, 0.0056872)],
}


@pytest.mark.parametrize("case", MINDSPORE)
def test_as_mindspore(case: str) -> None:
    made: Any = eval(f"audio.{case}", SCOPE)
    found = made if isinstance(made, tuple) else (made,)
    for value, (shape, dtype, size, mixed) in zip(map(np.asarray, found), MINDSPORE[case], strict=True):
        assert (value.shape, str(value.dtype)) == (shape, dtype)
        values = value.astype("f8").reshape(-1)
        assert abs(values).mean() == pytest.approx(size, rel=2e-4)
        assert values @ np.cos(np.arange(values.size)) == pytest.approx(mixed, rel=2e-3, abs=2e-3)


@pytest.mark.parametrize(("order", "length"), [(0, 5), (1, 64), (2, 65), (4, 200)])
def test_filters_follow_their_recurrence(order: int, length: int) -> None:
    """A block of outputs at once is what one after the other gives."""
    draws = np.random.default_rng(order)
    after, before = [1.5, *draws.uniform(-0.4, 0.4, order)], draws.uniform(-1, 1, order + 1).tolist()
    wave, made = draws.normal(size=length), list[float]()
    for k in range(length):
        inputs = sum(c * wave[k - j] for j, c in enumerate(before) if k >= j)
        made.append((inputs - sum(c * made[k - j] for j, c in enumerate(after) if 0 < j <= k)) / after[0])
    assert np.allclose(filtered(wave[None], after, before)[0], made, atol=1e-12)


def test_masks_are_drawn_by_row_and_waves_come_in_blocks() -> None:
    """Random masks are those of a row's number, whatever the batch; other transforms take batches at once."""
    spectra = np.ones((6, 2, 8, 10), np.float32)

    def made(size: int) -> Any:
        data = ds.NumpySlicesDataset({"x": spectra}, shuffle=False)
        data = data.map([audio.TimeMasking(True, 6), audio.FrequencyMasking(True, 5), audio.ComputeDeltas()], "x")
        return np.concatenate([row[0] for row in data.batch(size).rows(EpochRun(3))])

    assert np.array_equal(made(1), made(4))
    assert len({row.tobytes() for row in made(2)}) > 1
    data = ds.NumpySlicesDataset({"x": np.stack([WAVE] * 3)}, shuffle=False).map(audio.MelSpectrogram(n_fft=32), "x")
    (batch,) = data.batch(3).rows(EpochRun(0))
    assert batch[0].shape == (3, 2, 128, 10)
    assert "MelSpectrogram: the whole block at once" in data.explain()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("Spectrogram(16, 20)", "win_length"),
        ("Spectrogram(400)(wave[:, :20])", "20 values long"),
        ("MelScale(5, 16000, 9000.0)", "f_min"),
        ("MelScale()(spectrum)", "shape"),
        ("MFCC(n_mfcc=300)", "n_mfcc"),
        ("LowpassBiquad(16000, 30.0, 2.0)", "Q"),
        ("LFilter([1.0], [1.0, 2.0])", "a_coeffs"),
        ("Gain(2.0)(np.array('a'))", "numbers"),
        ("Fade(200)(wave)", "200"),
        ("DCShift(0.5, 0.05)", "limiter_gain"),
        ("Vol(-1.0)", "gain"),
    ],
)
def test_mistakes(wrong: str, words: str) -> None:
    with pytest.raises(msc.MscError, match=words) as raised:
        eval(f"audio.{wrong}", {**SCOPE, "np": np})
    assert raised.value.diagnostics[0].code in ("MSC0874", "MSC0833")


def written(path: Path, values: Any, width: int = 2, rate: int = 8000) -> Path:
    """A WAV file of one channel, or of several [time, channels]."""
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = np.asarray(values, "<i4" if width > 1 else "u1").reshape(len(values), -1)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(samples.reshape(-1, 1).view("u1").reshape(-1, samples.itemsize)[:, :width].tobytes())
    return path


def rows(dataset: ds.Dataset) -> list[Any]:
    return [[v.tolist() for v in row] for row in dataset.rows(EpochRun(0))]


def test_sounds_in_folders(tmp_path: Path) -> None:
    """The columns of each data set; samples of 1 to 4 bytes as parts of 1; lists of parts."""
    half = {1: 192, 2: 1 << 14, 3: 1 << 22, 4: 1 << 30}
    for width, value in half.items():
        written(tmp_path / "yes" / f"0_1_{width}.wav", [value, value], width)
    yes = ds.YesNoDataset(tmp_path / "yes", shuffle=False)
    assert yes.get_col_names() == ["waveform", "sample_rate", "labels"]
    assert rows(yes) == [[[[0.5, 0.5]], 8000, [0, 1, width]] for width in half]
    for name in ("go/a_nohash_0.wav", "go/b_nohash_1.wav", "no/a_nohash_0.wav", "_background_noise_/x.wav"):
        written(tmp_path / "words" / name, [[0, 1 << 14]])
    (tmp_path / "words" / "testing_list.txt").write_text("go/b_nohash_1.wav\n")
    (tmp_path / "words" / "validation_list.txt").write_text("no/a_nohash_0.wav\n")
    found = {
        usage: [row[2:] for row in rows(ds.SpeechCommandsDataset(tmp_path / "words", usage, shuffle=False))]
        for usage in ("train", "valid", "test")
    }
    assert found == {"train": [["go", "a", 0]], "valid": [["no", "a", 0]], "test": [["go", "b", 1]]}
    assert rows(ds.GTZANDataset(tmp_path / "words", num_samples=1, shuffle=False))[0][0] == [[0.0], [0.5]]
    written(tmp_path / "lj" / "wavs" / "one.wav", [0])
    (tmp_path / "lj" / "metadata.csv").write_text("one|It is 1.|It is one.\n")
    assert rows(ds.LJSpeechDataset(tmp_path / "lj")) == [[[[0.0]], 8000, "It is 1.", "It is one."]]


def test_damaged_sounds_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "0_1.wav", [0] * 50)
    whole = path.read_bytes()
    monkeypatch.setitem(sys.modules, "soundfile", None)
    for data, code in ((whole[:60], "MSC0870"), (whole[:20], "MSC0870"), (b"fLaC" + whole, "MSC0875")):
        path.write_bytes(data)
        with pytest.raises(msc.MscError) as raised:
            rows(ds.YesNoDataset(tmp_path))
        assert raised.value.diagnostics[0].code == code
    path.rename(tmp_path / "a_1.wav")
    with pytest.raises(msc.MscError, match="list of labels"):
        rows(ds.YesNoDataset(tmp_path))
