"""Pillow, which image files need: it is loaded when something is decoded."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

import numpy as np

from msc.dataset.values import Array
from msc.frontend.errors import ApiError, ApiValueError


def pillow() -> Any:
    """Pillow's module `Image`. Raises MSC0875."""
    try:
        return import_module("PIL.Image")
    except ImportError:
        raise ApiError("MSC0875", "image files need Pillow", help="pip install pillow") from None


def is_picture(value: object) -> bool:
    """Whether a value is an image of Pillow's."""
    return type(value).__module__.startswith("PIL.")


def picture(data: Array, name: str) -> Any:
    """The bytes of an image file as an image of Pillow's. Raises MSC0870 and MSC0875."""
    image = pillow()
    if data.ndim != 1 or data.dtype != np.uint8:
        raise ApiValueError(
            "MSC0874", f"{name} is decoded from the bytes of a file, not from {data.dtype} of rank {data.ndim}"
        )
    try:
        found = image.open(io.BytesIO(data.tobytes()))
        return found.convert("RGB")
    except image.UnidentifiedImageError:
        raise ApiValueError("MSC0870", f"{name} cannot be decoded: it is no image of a known format") from None
    except (OSError, SyntaxError, ValueError, image.DecompressionBombError) as error:
        raise ApiValueError("MSC0870", f"{name} cannot be decoded: {error}") from None


def decoded(data: Array, name: str = "an image") -> Array:
    """The bytes of an image file as [height, width, 3] of UInt8."""
    return np.asarray(picture(data, name))
