"""Transforms of images, as MindSpore's `dataset.vision`: NumPy on arrays, Pillow for files."""

# isort: off
# fmt: off
from typing import TYPE_CHECKING
import sys

from msc.dataset.vision import pixels
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
    "HWC2CHW", "AdjustBrightness", "AdjustContrast", "AdjustHue", "AdjustSaturation", "Border", "CenterCrop",
    "ConvertColor", "ConvertMode", "Crop", "CutOut", "Decode", "Grayscale", "HorizontalFlip", "Inter", "Invert",
    "Normalize", "Pad", "RandomAffine", "RandomColorAdjust", "RandomCrop", "RandomCropDecodeResize", "RandomErasing",
    "RandomHorizontalFlip", "RandomResizedCrop", "RandomRotation", "RandomVerticalFlip", "Rescale", "Resize", "Rotate",
    "ToNumpy", "ToPIL", "ToTensor", "VerticalFlip",
]

sys.modules[f"{__name__}.utils"] = pixels  # where MindSpore has Inter and Border

publish(globals(), [name for name in __all__ if name not in ("Border", "ConvertMode", "Inter")], "dataset.vision")


if not TYPE_CHECKING:  # a checker knows the names that there are

    def __getattr__(name: str) -> object:
        raise missing_name("msc.dataset.vision", name, __all__)
