"""Checkpoints that are encrypted, in MindSpore's form: AES-GCM, which shows any change of the file, and AES-CBC.

The plain text is cut into parts of 64 MiB. Each is a magic number, with GCM a tag of 16 bytes, the length of what
follows, the length of the initial vector (16; GCM takes the first 12 bytes of it), the vector, the length of the
ciphertext, and that. Numbers are 32 bits, little-endian. Keys are 16, 24 or 32 bytes.
Source: MindSpore, mindspore/core/utils/crypto.cc.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.support.argument_values import described
from msc.support.diagnostics import MscError
from msc.support.wording import counted

MODES = ("AES-GCM", "AES-CBC")
_MAGIC = {"AES-GCM": 0x7F3A5ED8, "AES-CBC": 0x7F3A5ED9, "SM4-CBC": 0x7F3A5EDA}
_PART = 64 << 20
_VECTOR, _NONCE, _TAG, _BLOCK = 16, 12, 16, 16
_KEYS = (16, 24, 32)


def check_key(what: str, key: object, mode: object) -> None:
    """Raises MSC0888 for what is no key, or no mode that is there."""
    if not isinstance(key, bytes) or len(key) not in _KEYS:
        given = counted(len(key), "byte") if isinstance(key, bytes) else described(key)
        raise ApiTypeError("MSC0888", f"{what}_key is {given}; it takes bytes, 16, 24 or 32 of them")
    if mode not in MODES:
        reason = "; SM4 is not there" if mode == "SM4-CBC" else ""
        raise ApiValueError("MSC0888", f"{what}_mode is {described(mode)}; it takes 'AES-GCM' or 'AES-CBC'{reason}")


def mode_of(start: bytes) -> str | None:
    """The mode of an encrypted file that begins so; None for a file that is not encrypted."""
    number = int.from_bytes(start[:4], "little")
    return next((mode for mode, magic in _MAGIC.items() if len(start) >= 4 and number == magic), None)


def encrypted(data: bytes, key: bytes, mode: str) -> bytes:
    """The file of a plain text. Raises MSC0888 without the package `cryptography`."""
    ciphers = _ciphers()
    parts = (data[k : k + _PART] for k in range(0, len(data), _PART))
    return b"".join(_part(ciphers, part, key, mode) for part in parts)


def decrypted(data: bytes, key: bytes, mode: str, file: str) -> bytes:
    """The plain text of a file. Raises MSC0888 for a wrong key, and a file that was changed."""
    check_key("dec", key, mode)
    found = mode_of(data)
    if found != mode:
        has = "is not encrypted" if found is None else f"is encrypted by {found}, not by {mode}"
        raise ApiValueError("MSC0888", f"checkpoint {file} {has}")
    ciphers, place, plain = _ciphers(), 0, bytearray()
    while place < len(data):
        if mode_of(data[place : place + 4]) != mode:
            raise undecipherable(file)
        place += 4
        tag = data[place : place + _TAG] if mode == "AES-GCM" else b""
        part, place = _sized(data, place + len(tag), file)
        vector, inner = _sized(part, 0, file)
        text, end = _sized(part, inner, file)
        if end != len(part) or len(vector) != _VECTOR:
            raise undecipherable(file)
        plain += _plain(ciphers, key, vector, text, tag, file)
    return bytes(plain)


def _ciphers() -> Any:
    try:
        return import_module("cryptography.hazmat.primitives.ciphers")
    except ImportError:
        help_ = "pip install cryptography"
        raise ApiValueError("MSC0888", "encrypted checkpoints need the package cryptography", help=help_) from None


def _part(ciphers: Any, data: bytes, key: bytes, mode: str) -> bytes:
    vector, algorithm = os.urandom(_VECTOR), ciphers.algorithms.AES(key)
    if mode == "AES-GCM":
        encryptor = ciphers.Cipher(algorithm, ciphers.modes.GCM(vector[:_NONCE])).encryptor()
        text = encryptor.update(data) + encryptor.finalize()
        tag = encryptor.tag
    else:
        encryptor = ciphers.Cipher(algorithm, ciphers.modes.CBC(vector)).encryptor()
        more = _BLOCK - len(data) % _BLOCK
        text, tag = encryptor.update(data + bytes([more]) * more) + encryptor.finalize(), b""
    rest = _number(len(vector)) + vector + _number(len(text)) + text
    return _number(_MAGIC[mode]) + tag + _number(len(rest)) + rest


def _plain(ciphers: Any, key: bytes, vector: bytes, text: bytes, tag: bytes, file: str) -> bytes:
    algorithm = ciphers.algorithms.AES(key)
    try:
        if tag:
            mode = ciphers.modes.GCM(vector[:_NONCE], tag)
            decryptor = ciphers.Cipher(algorithm, mode).decryptor()
            return decryptor.update(text) + decryptor.finalize()
        decryptor = ciphers.Cipher(algorithm, ciphers.modes.CBC(vector)).decryptor()
        padded = decryptor.update(text) + decryptor.finalize()
    except (ValueError, import_module("cryptography.exceptions").InvalidTag):
        raise undecipherable(file) from None
    more = padded[-1] if padded else 0
    if not 1 <= more <= _BLOCK or padded[-more:] != bytes([more]) * more:
        raise undecipherable(file)
    return padded[:-more]


def _number(value: int) -> bytes:
    return value.to_bytes(4, "little")


def _sized(data: bytes, place: int, file: str) -> tuple[bytes, int]:
    """Bytes whose length stands before them, and the place behind them."""
    size = int.from_bytes(data[place : place + 4], "little")
    start, end = place + 4, place + 4 + size
    if end > len(data) or start > len(data):
        raise undecipherable(file)
    return data[start:end], end


def undecipherable(file: str, *notes: str) -> MscError:
    """The error of a file that a key does not open."""
    message = f"checkpoint {file} cannot be decrypted: the key is another one, or the file was changed"
    return ApiValueError("MSC0888", message, notes=notes)
