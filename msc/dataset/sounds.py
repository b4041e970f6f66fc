"""Data sets of sounds in folders: WAV files as waves [channels, time] of Float32.

FLAC and other files are read by `soundfile`, which is loaded when one comes.
"""

# soundfile has no types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import wave
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from msc.dataset import arguments
from msc.dataset.arguments import refuse
from msc.dataset.images import corrupt
from msc.dataset.sources import IndexedDataset
from msc.dataset.text_files import lines
from msc.dataset.values import Array, Row
from msc.frontend.errors import ApiError, ApiValueError
from msc.frontend.settings import unused
from msc.support.plain_files import opened


def read_sound(path: Path) -> tuple[Array, int]:
    """The wave [channels, time] of a file, from -1 to 1 as Float32, and its sample rate. Raises MSC0870, MSC0875."""
    try:
        with opened(path) as file:
            if file.peek(4)[:4] != b"RIFF":
                return _by_soundfile(path, file)
            with wave.open(file) as sound:
                width, channels, rate = sound.getsampwidth(), sound.getnchannels(), sound.getframerate()
                count, data = sound.getnframes(), sound.readframes(sound.getnframes())
    except (OSError, wave.Error, EOFError) as error:
        raise corrupt(path, str(error) or "it ends within its header") from None
    if len(data) != count * width * channels:
        raise corrupt(path, f"it has {len(data):,} bytes of sound, its header says {count * width * channels:,}")
    if width == 1:
        values = np.frombuffer(data, np.uint8).astype(np.float32) / 128 - 1
    else:
        wide = np.zeros((count * channels, 4), np.uint8)  # The bytes of a sample are the upper ones of a word.
        wide[:, 4 - width :] = np.frombuffer(data, np.uint8).reshape(-1, width)
        values = (wide.view("<i4")[:, 0] / 2.0**31).astype(np.float32)
    return np.ascontiguousarray(values.reshape(count, channels).T), rate


def _by_soundfile(path: Path, file: Any) -> tuple[Array, int]:
    try:
        library = import_module("soundfile")
    except ImportError:
        message = f"'{path}' is no WAV file; others need soundfile"
        raise ApiError("MSC0875", message, help="pip install soundfile") from None
    try:
        values, rate = library.read(file, dtype="float32", always_2d=True)
    except RuntimeError as error:
        raise corrupt(path, str(error)) from None
    return np.ascontiguousarray(values.T), rate


class _SoundFolder(IndexedDataset):
    """Base: sounds of a folder, each with what is known of it."""

    READS_FILES = True
    COLUMNS: ClassVar[tuple[str, ...]] = ()
    """Beside the wave and its sample rate."""

    def __init__(
        self,
        dataset_dir: str | Path,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        unused(type(self).__name__, cache=cache)
        columns = ("waveform", "sample_rate", *self.COLUMNS)
        super().__init__(columns, sampler, shuffle, num_samples, num_shards, shard_id, num_parallel_workers)
        self._folder = arguments.folder("dataset_dir", dataset_dir)

    def _sounds(self) -> Iterator[tuple[Path, Row]]:
        """The files, and what is known of them."""
        raise NotImplementedError

    @cached_property
    def _found(self) -> list[tuple[Path, Row]]:
        found = list(self._sounds())
        if not found:
            raise ApiValueError(
                "MSC0870", f"dataset_dir: '{self._folder}' has no sounds as {type(self).__name__} reads"
            )
        return found

    def total(self) -> int:
        return len(self._found)

    def row(self, index: int) -> Row:
        path, known = self._found[index]
        sound, rate = read_sound(path)
        return sound, np.asarray(rate, np.int32), *known


class YesNoDataset(_SoundFolder):
    """YesNo: files whose names are eight labels, as `0_1_0_1_1_0_0_1.wav`; columns with `labels`."""

    COLUMNS = ("labels",)

    def _sounds(self) -> Iterator[tuple[Path, Row]]:
        for path in sorted(self._folder.glob("*.wav")):
            parts = path.stem.split("_")
            if not all(part.isdecimal() for part in parts):
                raise corrupt(path, "its name is no list of labels, as 0_1_0_1_1_0_0_1.wav")
            yield path, (np.asarray(list(map(int, parts)), np.int32),)


class LJSpeechDataset(_SoundFolder):
    """LJSpeech: `metadata.csv` and `wavs`; columns with `transcription` and `normalized_transcript`."""

    COLUMNS = ("transcription", "normalized_transcript")

    def _sounds(self) -> Iterator[tuple[Path, Row]]:
        table = self._folder / "metadata.csv"
        for number, line in enumerate(lines(table), 1):
            parts = line.rstrip("\r").split("|")
            if line and len(parts) != 3:
                raise corrupt(table, f"line {number} has {len(parts)} fields, not 3")
            if line:
                yield self._folder / "wavs" / f"{parts[0]}.wav", (np.asarray(parts[1]), np.asarray(parts[2]))


class GTZANDataset(_SoundFolder):
    """GTZAN: a folder for each genre; columns with `label`, its name. There are no lists of parts."""

    COLUMNS = ("label",)

    def _sounds(self) -> Iterator[tuple[Path, Row]]:
        for path in sorted(self._folder.glob("*/*.wav")):
            yield path, (np.asarray(path.parent.name),)


class SpeechCommandsDataset(_SoundFolder):
    """Speech Commands: a folder for each word; columns with `label`, `speaker_id` and `utterance_number`."""

    COLUMNS = ("label", "speaker_id", "utterance_number")
    _LISTS: ClassVar = {"valid": "validation_list.txt", "test": "testing_list.txt"}

    def __init__(self, dataset_dir: str | Path, usage: str | None = None, *others: Any, **named: Any) -> None:
        if usage not in (None, "all", "train", "valid", "test"):
            refuse("usage", usage, "'train', 'test', 'valid' or 'all'")
        super().__init__(dataset_dir, *others, **named)
        self._usage = usage or "all"

    def _listed(self, usage: str) -> set[str]:
        return {line.strip() for line in lines(self._folder / self._LISTS[usage])}

    def _sounds(self) -> Iterator[tuple[Path, Row]]:
        listed = {usage: self._listed(usage) for usage in self._LISTS if self._usage in (usage, "train")}
        for path in sorted(self._folder.glob("*/*.wav")):
            name = f"{path.parent.name}/{path.name}"
            is_listed = any(name in names for names in listed.values())
            if path.parent.name == "_background_noise_" or (listed and is_listed == (self._usage == "train")):
                continue
            speaker, _, number = path.stem.partition("_nohash_")
            if not number.isdecimal():
                raise corrupt(path, "its name is no SPEAKER_nohash_NUMBER.wav")
            yield path, (np.asarray(path.parent.name), np.asarray(speaker), np.asarray(int(number), np.int32))
