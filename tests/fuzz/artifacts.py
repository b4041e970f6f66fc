"""Artifacts: cut, flipped, spliced, with another signature under a right seal; each loaded in a process of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np

import msc
from msc.runtime.seal import Seal, append_seal, read_seal
from msc.runtime.shared_library import copy_of_bytes
from msc.support.diagnostics import MscError
from tests.fuzz.api_arguments import networks

Random = np.random.Generator

_WORDS = (
    b"0",
    b"-1",
    b"1e999",
    b"NaN",
    b"null",
    b"[]",
    b"{}",
    b'"f32"',
    b'"x"',
    b"99999999999999999999",
    b"true",
    b"[[[",
)


@cache
def sound() -> tuple[bytes, ...]:
    """Whole artifacts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.so"
        found = list[bytes]()
        for network in networks()[:2]:
            network.save(path)
            found.append(path.read_bytes())
        return tuple(found)


class Artifacts:
    """The target `artifact`."""

    def seeds(self) -> Iterator[bytes]:
        """Whole artifacts, and other files."""
        yield from sound()
        yield from (b"", b"\x7fELF", b"#!/bin/sh\n", bytes(5000))

    def run(self, data: bytes) -> str:
        """Load in a child, which must end well."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.write(write, _answer(data).encode()[:4000])
                status = 0
            finally:
                os._exit(status)
        os.close(write)
        with os.fdopen(read, "rb") as answers:
            text = answers.read().decode()
        _, status = os.waitpid(child, 0)
        if status or text.startswith("fault"):
            raise AssertionError(f"the process ended with status {status}: {text}")
        return text

    def damaged(self, data: bytes, random: Random, mutate: Callable[[bytes], bytes]) -> bytes:
        """A part of the file goes, is overwritten or moved; or the signature changes and the file is sealed again."""
        whole = sound()[int(random.integers(len(sound())))]
        if len(data) < 5000 or random.random() < 0.5:
            data = whole
        at, length = int(random.integers(len(data))), int(random.integers(1, 64))
        match int(random.integers(7)):
            case 0:
                return data[:at]
            case 1:
                return data[:at] + random.bytes(length) + data[at + length :]
            case 2:
                return data[:at] + data[at + length :]
            case 3:
                return data[:at] + bytes([data[at] ^ 1 << int(random.integers(8))]) + data[at + 1 :]
            case 4:
                head = int(random.integers(1024))
                return data[:head] + bytes([data[head] ^ 1 << int(random.integers(8))]) + data[head + 1 :]
            case 5:
                return mutate(data)
            case _:
                return resealed(whole, random)


def resealed(data: bytes, random: Random) -> bytes:
    """The artifact with a signature that was changed, and a seal that fits."""
    seal = seal_of(data)
    text = seal.signature.encode()
    for _ in range(int(random.integers(1, 4))):
        at = int(random.integers(len(text)))
        word = _WORDS[int(random.integers(len(_WORDS)))]
        end = at + int(random.integers(0, 6))
        text = text[:at] + word + text[end:]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.so"
        path.write_bytes(data[: seal.library_bytes])
        append_seal(path, text.decode())
        return path.read_bytes()


def _answer(data: bytes) -> str:
    """A diagnostic's code, or `loaded`: for a library that is whole, if its signature may be another one."""
    try:
        msc.load(data)
    except MscError as error:
        if error.diagnostics[0].code.startswith("MSC09"):
            raise
        return error.diagnostics[0].code
    whole = any(data.startswith(library) for library in libraries())
    return "loaded" if whole else "fault: loaded what msc did not write"


@cache
def libraries() -> tuple[bytes, ...]:
    """The shared libraries of the artifacts, without their seals."""
    return tuple(data[: seal_of(data).library_bytes] for data in sound())


def seal_of(data: bytes) -> Seal:
    """The seal of a sound artifact."""
    descriptor = copy_of_bytes(data)
    try:
        return read_seal(descriptor, len(data))
    finally:
        os.close(descriptor)
