"""Transforms of sounds, as MindSpore's `dataset.audio`."""

# isort: off
# fmt: off
from typing import TYPE_CHECKING
import sys

from msc.dataset.audio import spectra
from msc.dataset.audio.spectra import (
    MFCC, AmplitudeToDB, Angle, BorderType, ComplexNorm, ComputeDeltas, DBToAmplitude, FrequencyMasking, Magphase,
    MaskAlongAxis, MelScale, MelSpectrogram, MelType, NormMode, NormType, ScaleType, SpectralCentroid, Spectrogram,
    TimeMasking, WindowType, create_dct, linear_fbanks, melscale_fbanks,
)
from msc.dataset.audio.waves import (
    AllpassBiquad, BandpassBiquad, BandrejectBiquad, BassBiquad, Biquad, Contrast, DCShift, EqualizerBiquad, Fade,
    FadeShape, Gain, GainType, HighpassBiquad, LFilter, LowpassBiquad, MuLawDecoding, MuLawEncoding, Resample,
    ResampleMethod, TrebleBiquad, Vol,
)
from msc.frontend.boundary import publish
from msc.frontend.errors import missing_name

__all__ = [
    "MFCC", "AllpassBiquad", "AmplitudeToDB", "Angle", "BandpassBiquad", "BandrejectBiquad", "BassBiquad", "Biquad",
    "BorderType", "ComplexNorm", "ComputeDeltas", "Contrast", "DBToAmplitude", "DCShift", "EqualizerBiquad", "Fade",
    "FadeShape", "FrequencyMasking", "Gain", "GainType", "HighpassBiquad", "LFilter", "LowpassBiquad", "Magphase",
    "MaskAlongAxis", "MelScale", "MelSpectrogram", "MelType", "MuLawDecoding", "MuLawEncoding", "NormMode",
    "NormType", "Resample", "ResampleMethod", "ScaleType", "SpectralCentroid", "Spectrogram", "TimeMasking",
    "TrebleBiquad", "Vol", "WindowType", "create_dct", "linear_fbanks", "melscale_fbanks",
]

sys.modules[f"{__name__}.utils"] = spectra  # where MindSpore has its functions and most of its kinds

_KINDS = (
    "BorderType", "FadeShape", "GainType", "MelType", "NormMode", "NormType", "ResampleMethod", "ScaleType",
    "WindowType",
)
publish(globals(), [name for name in __all__ if name not in _KINDS], "dataset.audio")


if not TYPE_CHECKING:  # a checker knows the names that there are

    def __getattr__(name: str) -> object:
        raise missing_name("msc.dataset.audio", name, __all__)
