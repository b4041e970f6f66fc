"""Spectra of sounds: of waves [..., time], as [..., frequency, time].

Source: MindSpore 2.10's `dataset.audio`, whose definitions are those of torchaudio.
"""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import enum
from functools import cached_property
from typing import Any

import numpy as np

from msc.dataset.runs import draws
from msc.dataset.transforms.arguments import array, integer, number, refuse
from msc.dataset.transforms.general import Transform
from msc.dataset.values import Array
from msc.dataset.vision.pixels import Border as BorderType


class WindowType(enum.StrEnum):
    """Windows of a Fourier transform."""

    BARTLETT = "bartlett"
    BLACKMAN = "blackman"
    HAMMING = "hamming"
    HANN = "hann"
    KAISER = "kaiser"

    def values(self, size: int) -> Array:
        """The window; one period, of which the next one would begin with the first value."""
        if self is WindowType.KAISER:
            return np.kaiser(size + 1, 12.0)[:-1]
        return getattr(np, {"hann": "hanning"}.get(self.value, self.value))(size + 1)[:-1]


class MelType(enum.StrEnum):
    """Scales of pitch."""

    HTK = "htk"
    SLANEY = "slaney"


class NormType(enum.StrEnum):
    """Whether the bands of a scale of pitch are divided by their widths."""

    SLANEY = "slaney"
    NONE = "none"


class NormMode(enum.StrEnum):
    """Whether a cosine transform is orthonormal."""

    ORTHO = "ortho"
    NONE = "none"


class ScaleType(enum.StrEnum):
    """What a spectrum holds."""

    POWER = "power"
    MAGNITUDE = "magnitude"


_BEND, _STEP, _OCTAVE = 1000.0, 200.0 / 3, np.log(6.4) / 27
"""Slaney's scale: linear up to a frequency, in steps of so many Hertz, and logarithmic above it."""


def _to_mel(hertz: float, scale: MelType) -> float:
    if scale is MelType.HTK:
        return 2595.0 * np.log10(1.0 + hertz / 700.0)
    return hertz / _STEP if hertz < _BEND else _BEND / _STEP + np.log(hertz / _BEND) / _OCTAVE


def _to_hertz(mel: Array, scale: MelType) -> Array:
    if scale is MelType.HTK:
        return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)
    bend = _BEND / _STEP
    return np.where(mel < bend, mel * _STEP, _BEND * np.exp(_OCTAVE * (mel - bend)))


def _triangles(points: Array, n_freqs: int, sample_rate: int) -> Array:
    """Bands [n_freqs, bands] that rise from a point to the next one and fall to that behind it."""
    slopes = points[None, :] - np.linspace(0, sample_rate // 2, n_freqs)[:, None]
    widths = np.diff(points)
    return np.maximum(0.0, np.minimum(-slopes[:, :-2] / widths[:-1], slopes[:, 2:] / widths[1:]))


def melscale_fbanks(
    n_freqs: int,
    f_min: float,
    f_max: float,
    n_mels: int,
    sample_rate: int,
    norm: NormType = NormType.NONE,
    mel_type: MelType = MelType.HTK,
) -> Array:
    """Bands of pitch [n_freqs, n_mels] of a spectrum, Float32."""
    scale = MelType(mel_type)
    points = _to_hertz(np.linspace(_to_mel(f_min, scale), _to_mel(f_max, scale), n_mels + 2), scale)
    bands = _triangles(points, n_freqs, sample_rate)
    if NormType(norm) is NormType.SLANEY:
        bands *= 2.0 / (points[2:] - points[:-2])
    return bands.astype(np.float32)


def linear_fbanks(n_freqs: int, f_min: float, f_max: float, n_filter: int, sample_rate: int) -> Array:
    """Bands of equal width [n_freqs, n_filter] of a spectrum, Float32."""
    return _triangles(np.linspace(f_min, f_max, n_filter + 2), n_freqs, sample_rate).astype(np.float32)


def create_dct(n_mfcc: int, n_mels: int, norm: NormMode = NormMode.NONE) -> Array:
    """The cosine transform [n_mels, n_mfcc] of kind 2, Float32."""
    made = np.cos(np.pi / n_mels * (np.arange(n_mels) + 0.5)[:, None] * np.arange(n_mfcc))
    if NormMode(norm) is NormMode.NONE:
        return (made * 2.0).astype(np.float32)
    made[:, 0] /= np.sqrt(2.0)
    return (made * np.sqrt(2.0 / n_mels)).astype(np.float32)


class AudioTransform(Transform):
    """Base: a function of the last axes of an array of floats, which is computed in their precision."""

    TAKES_BLOCKS = True

    def __call__(self, *values: Any) -> Any:
        found = array(self._kind, values[0])
        if found.dtype.kind not in "fiu" or not found.ndim:
            refuse(self._kind, "the value", f"{found.dtype} of rank {found.ndim}", "numbers along time", is_type=True)
        given = found if found.dtype.kind == "f" and found.dtype.itemsize in (4, 8) else found.astype(np.float32)
        made = self.of(given)
        return made.astype(given.dtype) if made.dtype.kind == "f" else made

    def of(self, wave: Array) -> Array:
        """What it makes of it."""
        raise NotImplementedError


class Spectrogram(AudioTransform):
    """Powers of the frequencies in overlapping windows; with `power=0` complex numbers [..., 2]."""

    def __init__(
        self,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        pad: int = 0,
        window: WindowType = WindowType.HANN,
        power: float = 2.0,
        normalized: bool = False,
        center: bool = True,
        pad_mode: BorderType = BorderType.REFLECT,
        onesided: bool = True,
    ) -> None:
        kind = self._kind
        self._size = integer(kind, "n_fft", n_fft)
        width = self._size if win_length is None else integer(kind, "win_length", win_length)
        if width > self._size:
            refuse(kind, "win_length", width, f"an integer of at most n_fft, {self._size}")
        self._hop = width // 2 if hop_length is None else integer(kind, "hop_length", hop_length)
        self._pad, self._power = integer(kind, "pad", pad, 0), number(kind, "power", power, 0)
        before = (self._size - width) // 2
        values = WindowType(window).values(width)
        self._window = np.pad(values, (before, self._size - width - before))
        self._scale = 1.0 / np.sqrt((values**2).sum()) if normalized else 1.0
        self._is_centered, self._mode, self._is_onesided = bool(center), BorderType(pad_mode), bool(onesided)

    def of(self, wave: Array) -> Array:
        found = self.windows(wave)
        return np.swapaxes(found, -2, -3) if self._power == 0 else np.swapaxes(found, -1, -2)

    def windows(self, wave: Array) -> Array:
        """The spectrum [..., time, frequency], or [..., time, frequency, 2]."""
        sides = [(0, 0)] * (wave.ndim - 1)
        wave = np.pad(wave, [*sides, (self._pad, self._pad)]) if self._pad else wave
        side = self._size // 2 if self._is_centered else 0
        if wave.shape[-1] < (side + 1 if side and self._mode is BorderType.REFLECT else self._size - 2 * side):
            wanted = f"more: windows are {self._size} values long"
            refuse(self._kind, "the wave", f"{wave.shape[-1]} values long", wanted)
        if self._is_centered:
            wave = np.pad(wave, [*sides, (side, side)], self._mode.value)
        windows = np.lib.stride_tricks.sliding_window_view(wave, self._size, -1)[..., :: self._hop, :]
        transform = np.fft.rfft if self._is_onesided else np.fft.fft
        found = transform(windows * (self._window * self._scale).astype(wave.dtype), axis=-1)
        if self._power == 0:
            return np.stack([found.real, found.imag], -1)
        if self._power != 2:
            return np.abs(found) ** self._power
        power = np.square(found.real)
        return np.add(power, np.square(found.imag), out=power)


class MelScale(AudioTransform):
    """A spectrum [..., n_stft, time] in bands of pitch [..., n_mels, time]."""

    def __init__(
        self,
        n_mels: int = 128,
        sample_rate: int = 16000,
        f_min: float = 0.0,
        f_max: float | None = None,
        n_stft: int = 201,
        norm: NormType = NormType.NONE,
        mel_type: MelType = MelType.HTK,
    ) -> None:
        count, rate = integer(self._kind, "n_mels", n_mels), integer(self._kind, "sample_rate", sample_rate)
        most = rate // 2 if f_max is None else f_max
        if not 0 <= f_min < most:
            refuse(self._kind, "f_min", f_min, f"a frequency from 0 on, below f_max, {most}")
        self.bands = melscale_fbanks(n_stft, f_min, most, count, rate, norm, mel_type)

    def of(self, wave: Array) -> Array:
        if wave.ndim < 2 or wave.shape[-2] != len(self.bands):
            refuse(self._kind, "the spectrum's shape", str(list(wave.shape)), f"[..., {len(self.bands)}, time]")
        return np.matmul(self.bands.T.astype(wave.dtype), wave)


class MelSpectrogram(AudioTransform):
    """Spectrogram, then MelScale."""

    def __init__(
        self,
        sample_rate: int = 16000,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        f_min: float = 0.0,
        f_max: float | None = None,
        pad: int = 0,
        n_mels: int = 128,
        window: WindowType = WindowType.HANN,
        power: float = 2.0,
        normalized: bool = False,
        center: bool = True,
        pad_mode: BorderType = BorderType.REFLECT,
        onesided: bool = True,
        norm: NormType = NormType.NONE,
        mel_scale: MelType = MelType.HTK,
    ) -> None:
        how = (n_fft, win_length, hop_length, pad, window, power, normalized, center, pad_mode, onesided)
        self._spectrum = Spectrogram(*how)
        self._scale = MelScale(n_mels, sample_rate, f_min, f_max, n_fft // 2 + 1, norm, mel_scale)

    def of(self, wave: Array) -> Array:
        return np.swapaxes(np.matmul(self._spectrum.windows(wave), self._scale.bands), -1, -2)


class AmplitudeToDB(AudioTransform):
    """Decibels, of which none is more than `top_db` below the largest."""

    TAKES_BLOCKS = False  # The largest is that of a row.

    def __init__(
        self, stype: ScaleType = ScaleType.POWER, ref_value: float = 1.0, amin: float = 1e-10, top_db: float = 80.0
    ) -> None:
        self._factor = 10.0 if ScaleType(stype) is ScaleType.POWER else 20.0
        self._least = number(self._kind, "amin", amin, 0)
        self._reference = self._factor * np.log10(max(self._least, number(self._kind, "ref_value", ref_value)))
        self._below = number(self._kind, "top_db", top_db, 0)

    def of(self, wave: Array) -> Array:
        found = self._factor * np.log10(np.maximum(wave, self._least)) - self._reference
        return np.maximum(found, found.max(axis=tuple(range(-min(found.ndim, 3), 0)), keepdims=True) - self._below)


class DBToAmplitude(AudioTransform):
    """Amplitudes or powers of decibels."""

    def __init__(self, ref: float, power: float) -> None:
        self._reference, self._power = number(self._kind, "ref", ref), number(self._kind, "power", power)

    def of(self, wave: Array) -> Array:
        return self._reference * (10.0 ** (0.1 * wave)) ** self._power


class MFCC(AudioTransform):
    """Cosine transform of a spectrum of pitch in decibels, or of its logarithm."""

    TAKES_BLOCKS = False

    def __init__(
        self,
        sample_rate: int = 16000,
        n_mfcc: int = 40,
        dct_type: int = 2,
        norm: NormMode = NormMode.ORTHO,
        log_mels: bool = False,
        melkwargs: dict[str, Any] | None = None,
    ) -> None:
        if dct_type != 2:
            refuse(self._kind, "dct_type", dct_type, "2")
        how = dict(melkwargs or {})
        bands, count = how.get("n_mels", 128), integer(self._kind, "n_mfcc", n_mfcc)
        if count > bands:
            refuse(self._kind, "n_mfcc", count, f"an integer of at most n_mels, {bands}")
        self._spectrum = MelSpectrogram(sample_rate, **how)
        self._decibels, self._is_log = AmplitudeToDB(), bool(log_mels)
        self._transform = create_dct(count, bands, norm)

    def of(self, wave: Array) -> Array:
        found = self._spectrum.of(wave)
        found = np.log(found + 1e-6) if self._is_log else self._decibels.of(found)
        return np.matmul(self._transform.T.astype(wave.dtype), found)


class SpectralCentroid(AudioTransform):
    """The mean frequency in each window [..., 1, time]."""

    def __init__(
        self,
        sample_rate: int,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        pad: int = 0,
        window: WindowType = WindowType.HANN,
    ) -> None:
        self._spectrum = Spectrogram(n_fft, win_length, hop_length, pad, window, 1.0)
        self._rate = integer(self._kind, "sample_rate", sample_rate)

    def of(self, wave: Array) -> Array:
        found = self._spectrum.of(wave)
        hertz = np.linspace(0, self._rate // 2, found.shape[-2])[:, None]
        return (hertz * found).sum(-2, keepdims=True) / found.sum(-2, keepdims=True)


class ComputeDeltas(AudioTransform):
    """How a spectrum changes along time, by a window of an odd number of values."""

    def __init__(self, win_length: int = 5, pad_mode: BorderType = BorderType.EDGE) -> None:
        self._side, self._mode = integer(self._kind, "win_length", win_length, 3) // 2, BorderType(pad_mode)

    @cached_property
    def _weights(self) -> Array:
        return np.arange(-self._side, self._side + 1) / (self._side * (self._side + 1) * (2 * self._side + 1) / 3)

    def of(self, wave: Array) -> Array:
        padded = np.pad(wave, [*[(0, 0)] * (wave.ndim - 1), (self._side, self._side)], self._mode.value)
        return np.lib.stride_tricks.sliding_window_view(padded, 2 * self._side + 1, -1) @ self._weights


class ComplexNorm(AudioTransform):
    """Powers of complex numbers [..., 2]."""

    def __init__(self, power: float = 1.0) -> None:
        self._power = number(self._kind, "power", power, 0)

    def of(self, wave: Array) -> Array:
        return np.hypot(*_complex(self._kind, wave)) ** self._power


class Angle(AudioTransform):
    """Angles of complex numbers [..., 2]."""

    def of(self, wave: Array) -> Array:
        real, imaginary = _complex(self._kind, wave)
        return np.arctan2(imaginary, real)


class Magphase(AudioTransform):
    """Powers and angles of complex numbers [..., 2]: two columns."""

    TAKES_BLOCKS = False

    def __init__(self, power: float = 1.0) -> None:
        self._norm, self._angle = ComplexNorm(power), Angle()

    def __call__(self, *values: Any) -> tuple[Array, Array]:
        return self._norm(*values), self._angle(*values)


def _complex(transform: str, value: Array) -> tuple[Array, Array]:
    if value.shape[-1] != 2:
        refuse(transform, "the value's shape", str(list(value.shape)), "[..., 2]: real and imaginary parts")
    return value[..., 0], value[..., 1]


class MaskAlongAxis(AudioTransform):
    """A spectrum with a value in place of some frequencies (axis 1) or times (axis 2)."""

    def __init__(self, mask_start: int, mask_width: int, mask_value: float, axis: int) -> None:
        self._start, self._width = (
            integer(self._kind, "mask_start", mask_start, 0),
            integer(self._kind, "mask_width", mask_width, 0),
        )
        self._value = number(self._kind, "mask_value", mask_value)
        if axis not in (1, 2):
            refuse(self._kind, "axis", axis, "1, frequencies, or 2, times")
        self._axis = axis - 3

    def of(self, wave: Array) -> Array:
        size = wave.shape[self._axis]
        if self._start + self._width > size:
            refuse(self._kind, "the mask's end", self._start + self._width, f"at most {size}")
        found = wave.copy()
        part = slice(self._start, self._start + self._width)
        found[(..., part, slice(None)) if self._axis == -2 else (..., part)] = self._value
        return found


class _Masking(AudioTransform):
    """A mask of a place, or for each channel one of random place and width."""

    TAKES_BLOCKS = False
    AXIS = -1

    def _keep(self, iid_masks: bool, width: Any, name: str, start: Any, value: Any) -> None:
        self._is_random, self._value = bool(iid_masks), number(self._kind, "mask_value", value)
        self._width = integer(self._kind, name, width, 0)
        self._start = integer(self._kind, "mask_start", start, 0)

    def of(self, wave: Array) -> Array:
        if not self._is_random:
            mask = MaskAlongAxis(self._start, self._width, self._value, self.AXIS + 3)
            return mask.of(wave)
        found, drawn = wave.copy(), draws()
        flat = np.moveaxis(found, self.AXIS, -1)
        for place in np.ndindex(flat.shape[:-2]):
            size = flat.shape[-1]
            width = drawn.uniform(0, min(self._width, size))
            start = int(drawn.uniform(0, size - width))
            flat[(*place, slice(None), slice(start, start + int(width)))] = self._value
        return found


class TimeMasking(_Masking):
    """A spectrum with a value in place of some times."""

    def __init__(
        self, iid_masks: bool = False, time_mask_param: int = 0, mask_start: int = 0, mask_value: float = 0.0
    ) -> None:
        self._keep(iid_masks, time_mask_param, "time_mask_param", mask_start, mask_value)


class FrequencyMasking(_Masking):
    """A spectrum with a value in place of some frequencies."""

    AXIS = -2

    def __init__(
        self, iid_masks: bool = False, freq_mask_param: int = 0, mask_start: int = 0, mask_value: float = 0.0
    ) -> None:
        self._keep(iid_masks, freq_mask_param, "freq_mask_param", mask_start, mask_value)
