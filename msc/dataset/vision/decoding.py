"""Decoding image files, by Pillow. JPEG files are decoded by `simplejpeg` where it is installed: to the same bytes.

Both are loaded when something is decoded.
"""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import enum
import io
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from msc.dataset.transforms.arguments import refuse
from msc.dataset.values import Array
from msc.frontend.errors import ApiError, ApiValueError
from msc.support import plain_files
from msc.support.argument_values import file_path


def pillow() -> Any:
    """Pillow's module `Image`. Raises MSC0875."""
    try:
        return import_module("PIL.Image")
    except ImportError:
        raise ApiError("MSC0875", "image files need Pillow", help="pip install pillow") from None


def is_picture(value: object) -> bool:
    """Whether a value is an image of Pillow's."""
    return type(value).__module__.startswith("PIL.")


def picture(data: Array, name: str, form: str | None = "RGB") -> Any:
    """The bytes of an image file as an image of Pillow's, in a form, or as it is. Raises MSC0870 and MSC0875."""
    image = pillow()
    if data.ndim != 1 or data.dtype != np.uint8:
        raise ApiValueError(
            "MSC0874", f"{name} is decoded from the bytes of a file, not from {data.dtype} of rank {data.ndim}"
        )
    try:
        found = image.open(io.BytesIO(data.tobytes()))
        if found.mode == form or (form is None and found.mode in ("L", "RGB", "RGBA")):
            found.load()
            return found
        return found.convert(form or "RGB")
    except image.UnidentifiedImageError:
        raise ApiValueError("MSC0870", f"{name} cannot be decoded: it is no image of a known format") from None
    except (OSError, SyntaxError, ValueError, image.DecompressionBombError) as error:
        raise ApiValueError("MSC0870", f"{name} cannot be decoded: {error}") from None


class ImageReadMode(enum.IntEnum):
    """What `read_image` gives: the file's own channels, one of brightness, or three of colours."""

    UNCHANGED = 0
    GRAYSCALE = 1
    COLOR = 2


def read_image(filename: str, mode: ImageReadMode = ImageReadMode.UNCHANGED) -> Array:
    """The picture in a file as [height, width, channels] of UInt8. Raises MSC0870, MSC0874, MSC0875."""
    if not isinstance(mode, ImageReadMode):  # pyright: ignore[reportUnnecessaryIsInstance]
        refuse("read_image", "mode", mode, "a member of ImageReadMode", is_type=True)
    path = file_path("filename", filename)
    try:
        data = np.frombuffer(plain_files.content(path), np.uint8)
    except OSError as error:
        raise ApiValueError("MSC0870", f"'{path}' cannot be read: {error.strerror or error}") from None
    forms = {ImageReadMode.GRAYSCALE: "L", ImageReadMode.COLOR: "RGB"}
    found = np.asarray(picture(data, str(path), forms.get(mode)))
    return found[..., None] if found.ndim == 2 else found


def decoded(data: Array, name: str = "an image") -> Array:
    """The bytes of an image file as [height, width, 3] of UInt8."""
    if _jpeg_header(data) is not None:
        with suppress(ValueError):
            return _simplejpeg().decode_jpeg(data)
    return np.asarray(picture(data, name))


class OpenPicture:
    """The bytes of an image file, or pixels, of which somebody will read a part. Raises MSC0870 and MSC0875."""

    def __init__(self, data: Array, *, is_file: bool) -> None:
        self._data: Any = data
        header = _jpeg_header(data) if is_file else None
        self.pays_to_cut = header is None
        """Whether all sides of a part are read faster than the rows down to its last."""
        if is_file and header is None:
            self._data = picture(data, "an image")
            header = self._data.height, self._data.width
        self.height, self.width = header or data.shape[:2]

    def read(self, box: tuple[int, int, int, int], into: Array) -> None:
        """The bytes of a part (left, top, right, bottom) row after row at the beginning of a larger array."""
        left, top, right, bottom = box
        if not self.pays_to_cut:
            if _decoded_into(self._data, bottom if bottom < self.height else None, into):
                return
            self._data = picture(self._data, "an image")
        whole = self._data
        part = np.asarray(whole.crop(box)) if is_picture(whole) else whole[top:bottom, left:right]
        into[: part.size].reshape(part.shape)[...] = part


@cache
def _simplejpeg() -> Any:
    try:
        return import_module("simplejpeg")
    except ImportError:
        return None


def _jpeg_header(data: Array) -> tuple[int, int] | None:
    """Height and width of a JPEG file that `simplejpeg` decodes as Pillow does."""
    if data.ndim != 1 or data.dtype != np.uint8 or bytes(data[:3]) != b"\xff\xd8\xff" or _simplejpeg() is None:
        return None
    try:
        height, width, colours, _ = _simplejpeg().decode_jpeg_header(data)
    except ValueError:
        return None
    return (height, width) if colours in ("YCbCr", "Gray") else None


def _decoded_into(data: Array, bottom: int | None, into: Array) -> bool:
    """Whether a JPEG file's pixels are written, at least down to row `bottom`; False for what only Pillow decodes."""
    lower = None if bottom is None else _with_fewer_rows(data, bottom)
    try:
        _simplejpeg().decode_jpeg(data if lower is None else lower, buffer=into)
    except ValueError as error:
        if lower is None:
            return False
        # Only the first thing that is odd is told: if it is what lies behind the rows, the rows are right.
        return str(error).endswith("extraneous bytes before marker 0xd9") or _decoded_into(data, None, into)
    return True


_ROWS = 16
"""Rows of pixels that are coded together, at most."""
_FRAME, _RESTARTS, _SCAN = 0xC0, 0xDD, 0xDA


def _with_fewer_rows(data: Array, bottom: int) -> bytearray | None:
    """A JPEG file whose head says that it ends a little below a row; None if its rows do not come one after the other.

    A row of colours is mixed with the next one, which must be there.
    """
    found, place, frame = bytearray(data), 2, 0
    while place + 4 <= len(found) and found[place] == 0xFF:
        kind, length = found[place + 1], int.from_bytes(found[place + 2 : place + 4])
        if kind == _SCAN:
            break
        if kind == _RESTARTS or (kind & 0xF0 == _FRAME and kind not in (_FRAME, 0xC4)):
            return None
        frame = place if kind == _FRAME else frame
        place += 2 + length
    colours = found[frame + 9] if frame else 0
    if not 0 < colours <= 3 or any(found[frame + 11 + 3 * k] & 15 > 2 for k in range(colours)):
        return None
    rows = (bottom // _ROWS + 1) * _ROWS
    if rows >= int.from_bytes(found[frame + 5 : frame + 7]):
        return None
    found[frame + 5 : frame + 7] = rows.to_bytes(2)
    return found
