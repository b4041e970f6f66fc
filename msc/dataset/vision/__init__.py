"""Transforms of images, as MindSpore's `dataset.vision`: NumPy on arrays, Pillow for files."""

# isort: off
# fmt: off
from typing import TYPE_CHECKING
import sys

from msc.dataset.vision import pixels
from msc.dataset.vision.decoding import (
    ImageReadMode, read_image,
)
from msc.dataset.vision.enhancements import (
    AdjustGamma, AdjustSharpness, AutoContrast, CutMixBatch, Equalize, GaussianBlur, ImageBatchFormat,
    LinearTransformation, MixUpBatch, NormalizePad, Posterize, RandomAdjustSharpness, RandomAutoContrast,
    RandomColor, RandomEqualize, RandomGrayscale, RandomInvert, RandomLighting, RandomPosterize, RandomResize,
    RandomSelectSubpolicy, RandomSharpness, RandomSolarize, ResizedCrop, SliceMode, SlicePatches, Solarize,
    UniformAugment,
)
from msc.dataset.vision.pixels import Border, ConvertMode, Inter
from msc.dataset.vision.random_transforms import (
    CutOut, RandomAffine, RandomColorAdjust, RandomCrop, RandomCropDecodeResize, RandomErasing, RandomHorizontalFlip,
    RandomResizedCrop, RandomRotation, RandomVerticalFlip,
)
from msc.dataset.vision.transforms import (
    HWC2CHW, AdjustBrightness, AdjustContrast, AdjustHue, AdjustSaturation, CenterCrop, ConvertColor, Crop, Decode,
    Grayscale, HorizontalFlip, Invert, Normalize, Pad, Rescale, Resize, Rotate, ToNumpy, ToPIL, ToTensor, VerticalFlip,
)
from msc.frontend.boundary import publish
from msc.frontend.errors import missing_name

__all__ = [
    "HWC2CHW", "AdjustBrightness", "AdjustContrast", "AdjustGamma", "AdjustHue", "AdjustSaturation",
    "AdjustSharpness", "AutoContrast", "Border", "CenterCrop", "ConvertColor", "ConvertMode", "Crop", "CutMixBatch",
    "CutOut", "Decode", "Equalize", "GaussianBlur", "Grayscale", "HorizontalFlip", "ImageBatchFormat",
    "ImageReadMode", "Inter", "Invert", "LinearTransformation", "MixUpBatch", "Normalize", "NormalizePad", "Pad",
    "Posterize", "RandomAdjustSharpness", "RandomAffine", "RandomAutoContrast", "RandomColor", "RandomColorAdjust",
    "RandomCrop", "RandomCropDecodeResize", "RandomEqualize", "RandomErasing", "RandomGrayscale",
    "RandomHorizontalFlip", "RandomInvert", "RandomLighting", "RandomPosterize", "RandomResize", "RandomResizedCrop",
    "RandomRotation", "RandomSelectSubpolicy", "RandomSharpness", "RandomSolarize", "RandomVerticalFlip", "Rescale",
    "Resize", "ResizedCrop", "Rotate", "SliceMode", "SlicePatches", "Solarize", "ToNumpy", "ToPIL", "ToTensor",
    "UniformAugment", "VerticalFlip", "read_image",
]

sys.modules[f"{__name__}.utils"] = pixels  # where MindSpore has Inter and Border

_MODES = ("Border", "ConvertMode", "ImageBatchFormat", "ImageReadMode", "Inter", "SliceMode")
publish(globals(), [name for name in __all__ if name not in _MODES], "dataset.vision")


if not TYPE_CHECKING:  # a checker knows the names that there are

    def __getattr__(name: str) -> object:
        raise missing_name("msc.dataset.vision", name, __all__)
