"""Transforms of waves [..., time]: volume, filters, codes, another sample rate.

Source: MindSpore 2.10's `dataset.audio`, whose definitions are those of torchaudio and SoX. Filters of two poles:
R. Bristow-Johnson, Audio EQ Cookbook, https://www.w3.org/TR/audio-eq-cookbook/.
"""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from msc.dataset.audio.spectra import AudioTransform
from msc.dataset.transforms.arguments import integer, number, refuse
from msc.dataset.values import Array


class GainType(enum.StrEnum):
    """What a volume is given in."""

    AMPLITUDE = "amplitude"
    POWER = "power"
    DB = "db"


class FadeShape(enum.StrEnum):
    """How a wave rises at its beginning and falls at its end."""

    QUARTER_SINE = "quarter_sine"
    HALF_SINE = "half_sine"
    LINEAR = "linear"
    LOGARITHMIC = "logarithmic"
    EXPONENTIAL = "exponential"

    def rising(self, size: int) -> Array:
        """Factors from nothing to all; falling ones are those from behind."""
        x = np.linspace(0, 1, size)
        return {
            FadeShape.LINEAR: lambda: x,
            FadeShape.EXPONENTIAL: lambda: 2.0 ** (x - 1) * x,
            FadeShape.LOGARITHMIC: lambda: np.log10(0.1 + x) + 1,
            FadeShape.QUARTER_SINE: lambda: np.sin(x * np.pi / 2),
            FadeShape.HALF_SINE: lambda: np.sin(x * np.pi - np.pi / 2) / 2 + 0.5,
        }[self]()


class ResampleMethod(enum.StrEnum):
    """Windows of interpolation."""

    SINC_INTERPOLATION = "sinc_interpolation"
    KAISER_WINDOW = "kaiser_window"


class Gain(AudioTransform):
    """Louder by decibels."""

    def __init__(self, gain_db: float = 1.0) -> None:
        self._factor = 10.0 ** (number(self._kind, "gain_db", gain_db) / 20)

    def of(self, wave: Array) -> Array:
        return wave * self._factor


class Vol(AudioTransform):
    """Louder by a factor of amplitude or power, or by decibels; cut at 1 and -1."""

    def __init__(self, gain: float, gain_type: GainType = GainType.AMPLITUDE) -> None:
        kind = GainType(gain_type)
        gain = number(self._kind, "gain", gain, -np.inf if kind is GainType.DB else 0)
        self._factor = {"amplitude": lambda: gain, "power": lambda: math.sqrt(gain), "db": lambda: 10 ** (gain / 20)}[
            kind.value
        ]()

    def of(self, wave: Array) -> Array:
        return np.clip(wave * self._factor, -1, 1)


class Fade(AudioTransform):
    """Rising at the beginning, falling at the end."""

    def __init__(self, fade_in_len: int = 0, fade_out_len: int = 0, fade_shape: FadeShape = FadeShape.LINEAR) -> None:
        self._rise = FadeShape(fade_shape).rising(integer(self._kind, "fade_in_len", fade_in_len, 0))
        self._fall = FadeShape(fade_shape).rising(integer(self._kind, "fade_out_len", fade_out_len, 0))[::-1]

    def of(self, wave: Array) -> Array:
        rise, fall = len(self._rise), len(self._fall)
        if max(rise, fall) > wave.shape[-1]:
            refuse(self._kind, "the wave", f"{wave.shape[-1]} values long", f"{max(rise, fall)} values or more")
        found = wave.copy()
        found[..., :rise] *= self._rise
        found[..., wave.shape[-1] - fall :] *= self._fall
        return found


class Contrast(AudioTransform):
    """Louder to the ear, as a compressor does."""

    def __init__(self, enhancement_amount: float = 75.0) -> None:
        self._amount = number(self._kind, "enhancement_amount", enhancement_amount, 0, 100) / 750

    def of(self, wave: Array) -> Array:
        angle = wave * (np.pi / 2)
        return np.sin(angle + self._amount * np.sin(4 * angle))


class DCShift(AudioTransform):
    """Moved up or down, and cut at 1 and -1."""

    def __init__(self, shift: float, limiter_gain: float | None = None) -> None:
        self._shift = number(self._kind, "shift", shift, -2, 2)
        if limiter_gain is not None:
            refuse(self._kind, "limiter_gain", limiter_gain, "None")

    def of(self, wave: Array) -> Array:
        return np.clip(wave + self._shift, -1, 1)


class MuLawEncoding(AudioTransform):
    """Values of -1 to 1 as codes of a logarithmic scale, Int32."""

    def __init__(self, quantization_channels: int = 256) -> None:
        self._top = integer(self._kind, "quantization_channels", quantization_channels) - 1.0

    def of(self, wave: Array) -> Array:
        scaled = np.sign(wave) * np.log1p(self._top * np.abs(wave)) / np.log1p(self._top)
        return ((scaled + 1) / 2 * self._top + 0.5).astype(np.int32)


class MuLawDecoding(MuLawEncoding):
    """Values of -1 to 1 of such codes."""

    def of(self, wave: Array) -> Array:
        scaled = wave / self._top * 2 - 1.0
        return np.sign(scaled) * (np.exp(np.abs(scaled) * np.log1p(self._top)) - 1.0) / self._top


_BLOCK = 64


def filtered(wave: Array, after: Sequence[float], before: Sequence[float]) -> Array:
    """A linear filter along time: `after` are the factors of outputs, `before` of inputs, the newest first.

    A block of outputs follows from its inputs, and from the last outputs before it, by two products of matrices.
    """
    poles, zeros = (np.asarray(c, np.float64) / after[0] for c in (after, before))
    length, order = wave.shape[-1], len(poles) - 1
    driven = sum(
        factor * np.concatenate([np.zeros((*wave.shape[:-1], k)), wave], -1)[..., :length]
        for k, factor in enumerate(zeros)
    )
    if not order:
        return np.asarray(driven)
    answers = np.zeros((order + _BLOCK, order + _BLOCK))  # To a unit at each place: that of a block behind `order`.
    answers[np.arange(order), np.arange(order)] = 1
    for k in range(order, order + _BLOCK):
        answers[k] = -poles[1:] @ answers[k - order : k][::-1]
        answers[k, k] += 1
    old, new = answers[order:, :order].T, answers[order:, order:].T
    made = np.zeros((*wave.shape[:-1], order + length))
    for first in range(0, length, _BLOCK):
        part = np.asarray(driven)[..., first : first + _BLOCK]
        size = part.shape[-1]
        made[..., order + first : order + first + size] = (
            made[..., first : first + order] @ old[:, :size] + part @ new[:size, :size]
        )
    return made[..., order:]


class LFilter(AudioTransform):
    """A linear filter, cut at 1 and -1 if `clamp`."""

    def __init__(self, a_coeffs: Sequence[float], b_coeffs: Sequence[float], clamp: bool = True) -> None:
        if len(a_coeffs) != len(b_coeffs) or not a_coeffs or not a_coeffs[0]:
            refuse(self._kind, "a_coeffs", str(a_coeffs), "as many factors as b_coeffs, the first of them not 0")
        self._after, self._before, self._cuts = list(a_coeffs), list(b_coeffs), bool(clamp)

    def of(self, wave: Array) -> Array:
        found = filtered(wave, self._after, self._before)
        return np.clip(found, -1, 1) if self._cuts else found


class Biquad(LFilter):
    """A filter of two poles."""

    def __init__(self, b0: float, b1: float, b2: float, a0: float, a1: float, a2: float) -> None:
        super().__init__([a0, a1, a2], [b0, b1, b2])


class _Cookbook(LFilter):
    """Base: a filter of two poles by a frequency and Q."""

    NAME = "central_freq"

    def _angle(self, sample_rate: Any, frequency: Any, quality: Any) -> tuple[float, float, float]:
        """Sine and cosine of the frequency, and the former by 2 Q."""
        rate = integer(self._kind, "sample_rate", sample_rate)
        angle = 2 * math.pi * number(self._kind, self.NAME, frequency) / rate
        wanted = number(self._kind, "Q", quality, 0, 1)
        if not wanted:
            refuse(self._kind, "Q", quality, "a number above 0, up to 1")
        return math.sin(angle), math.cos(angle), math.sin(angle) / 2 / wanted


class LowpassBiquad(_Cookbook):
    """What is below a frequency."""

    NAME = "cutoff_freq"

    def __init__(self, sample_rate: int, cutoff_freq: float, Q: float = 0.707) -> None:
        _, c, alpha = self._angle(sample_rate, cutoff_freq, Q)
        super().__init__([1 + alpha, -2 * c, 1 - alpha], [(1 - c) / 2, 1 - c, (1 - c) / 2])


class HighpassBiquad(_Cookbook):
    """What is above a frequency."""

    NAME = "cutoff_freq"

    def __init__(self, sample_rate: int, cutoff_freq: float, Q: float = 0.707) -> None:
        _, c, alpha = self._angle(sample_rate, cutoff_freq, Q)
        super().__init__([1 + alpha, -2 * c, 1 - alpha], [(1 + c) / 2, -1 - c, (1 + c) / 2])


class BandpassBiquad(_Cookbook):
    """What is near a frequency."""

    def __init__(self, sample_rate: int, central_freq: float, Q: float = 0.707, const_skirt_gain: bool = False) -> None:
        s, c, alpha = self._angle(sample_rate, central_freq, Q)
        gain = s / 2 if const_skirt_gain else alpha
        super().__init__([1 + alpha, -2 * c, 1 - alpha], [gain, 0.0, -gain])


class BandrejectBiquad(_Cookbook):
    """What is not near a frequency."""

    def __init__(self, sample_rate: int, central_freq: float, Q: float = 0.707) -> None:
        _, c, alpha = self._angle(sample_rate, central_freq, Q)
        super().__init__([1 + alpha, -2 * c, 1 - alpha], [1.0, -2 * c, 1.0])


class AllpassBiquad(_Cookbook):
    """All, with other phases near a frequency."""

    def __init__(self, sample_rate: int, central_freq: float, Q: float = 0.707) -> None:
        _, c, alpha = self._angle(sample_rate, central_freq, Q)
        super().__init__([1 + alpha, -2 * c, 1 - alpha], [1 - alpha, -2 * c, 1 + alpha])


class EqualizerBiquad(_Cookbook):
    """Louder by decibels near a frequency."""

    NAME = "center_freq"

    def __init__(self, sample_rate: int, center_freq: float, gain: float, Q: float = 0.707) -> None:
        _, c, alpha = self._angle(sample_rate, center_freq, Q)
        a = 10 ** (number(self._kind, "gain", gain) / 40)
        super().__init__([1 + alpha / a, -2 * c, 1 - alpha / a], [1 + alpha * a, -2 * c, 1 - alpha * a])


class _Shelf(_Cookbook):
    """Louder by decibels on one side of a frequency: `side` is 1 for below, -1 for above."""

    def _keep(self, side: int, sample_rate: int, gain: float, frequency: float, quality: float) -> None:
        _, c, alpha = self._angle(sample_rate, frequency, quality)
        a, c = 10 ** (number(self._kind, "gain", gain) / 40), c * side
        root, less, more = 2 * math.sqrt(a) * alpha, (a - 1) * c, (a + 1) * c
        after = [a + 1 + less + root, -2 * side * (a - 1 + more), a + 1 + less - root]
        before = [a * (a + 1 - less + root), 2 * side * a * (a - 1 - more), a * (a + 1 - less - root)]
        LFilter.__init__(self, after, before)


class BassBiquad(_Shelf):
    """Louder by decibels below a frequency."""

    def __init__(self, sample_rate: int, gain: float, central_freq: float = 100.0, Q: float = 0.707) -> None:
        self._keep(1, sample_rate, gain, central_freq, Q)


class TrebleBiquad(_Shelf):
    """Louder by decibels above a frequency."""

    def __init__(self, sample_rate: int, gain: float, central_freq: float = 3000, Q: float = 0.707) -> None:
        self._keep(-1, sample_rate, gain, central_freq, Q)


class Resample(AudioTransform):
    """At another sample rate, by a windowed sinc."""

    def __init__(
        self,
        orig_freq: float = 16000,
        new_freq: float = 16000,
        resample_method: ResampleMethod = ResampleMethod.SINC_INTERPOLATION,
        lowpass_filter_width: int = 6,
        rolloff: float = 0.99,
        beta: float | None = None,
    ) -> None:
        rates = [int(number(self._kind, n, v, 1)) for n, v in (("orig_freq", orig_freq), ("new_freq", new_freq))]
        self._old, self._new = (rate // math.gcd(*rates) for rate in rates)
        cut = min(self._old, self._new) * number(self._kind, "rolloff", rolloff, 0, 1)
        zeros = integer(self._kind, "lowpass_filter_width", lowpass_filter_width)
        self._side = math.ceil(zeros * self._old / cut)
        places = np.arange(-self._side, self._side + self._old) / self._old
        times = np.clip((places[None] - np.arange(self._new)[:, None] / self._new) * cut, -zeros, zeros)
        if ResampleMethod(resample_method) is ResampleMethod.SINC_INTERPOLATION:
            window = np.cos(times * np.pi / zeros / 2) ** 2
        else:
            shape = 14.769656459379492 if beta is None else beta
            window = np.i0(shape * np.sqrt(1 - (times / zeros) ** 2)) / np.i0(shape)
        self._weights = np.sinc(times) * window * (cut / self._old)

    def of(self, wave: Array) -> Array:
        if self._old == self._new:
            return wave
        length = wave.shape[-1]
        padded = np.pad(wave, [*[(0, 0)] * (wave.ndim - 1), (self._side, self._side + self._old)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, self._weights.shape[1], -1)[..., :: self._old, :]
        made = windows @ self._weights.T
        return made.reshape(*wave.shape[:-1], -1)[..., : math.ceil(self._new * length / self._old)]
