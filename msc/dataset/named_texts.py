"""Data sets of texts in CSV files of a folder: `train.csv` and `test.csv`, columns of strings."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from msc.dataset import arguments
from msc.dataset.arguments import refuse
from msc.dataset.text_files import CSVDataset, Shuffle, TextFileDataset
from msc.frontend.errors import ApiValueError
from msc.frontend.settings import unused


def _files(dataset_dir: Any, usage: Any, pattern: str, parts: tuple[str, ...]) -> list[str]:
    """The files of a folder that there are for a usage. Raises MSC0870 and MSC0871."""
    folder = arguments.folder("dataset_dir", dataset_dir)
    if usage not in (None, "all", *parts):
        refuse("usage", usage, " or ".join(map(repr, (*parts, "all"))))
    wanted = parts if usage in (None, "all") else (usage,)
    paths = [folder / pattern.format(part) for part in wanted]
    found = [str(path) for path in paths if path.is_file()]
    if not found:
        raise ApiValueError("MSC0870", f"dataset_dir: there is no file '{paths[0]}'")
    return found


class _CsvFolder(CSVDataset):
    COLUMNS: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        dataset_dir: str | Path,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        unused(type(self).__name__, cache=cache)
        super().__init__(
            _files(dataset_dir, usage, "{}.csv", ("train", "test")),
            column_names=list(self.COLUMNS),
            num_samples=num_samples,
            num_parallel_workers=num_parallel_workers,
            shuffle=shuffle,
            num_shards=num_shards,
            shard_id=shard_id,
        )


class AGNewsDataset(_CsvFolder):
    """AG News: `index`, `title`, `description`."""

    COLUMNS = ("index", "title", "description")


class AmazonReviewDataset(_CsvFolder):
    """Reviews of Amazon: `label`, `title`, `content`."""

    COLUMNS = ("label", "title", "content")


class DBpediaDataset(_CsvFolder):
    """DBpedia: `class`, `title`, `content`."""

    COLUMNS = ("class", "title", "content")


class SogouNewsDataset(_CsvFolder):
    """Sogou News: `index`, `title`, `content`."""

    COLUMNS = ("index", "title", "content")


class YahooAnswersDataset(_CsvFolder):
    """Yahoo! Answers: `class`, `title`, `content`, `answer`."""

    COLUMNS = ("class", "title", "content", "answer")


class YelpReviewDataset(_CsvFolder):
    """Reviews of Yelp: `label`, `text`."""

    COLUMNS = ("label", "text")


class _TextFolder(TextFileDataset):
    PATTERN: ClassVar[str] = ""

    def __init__(
        self,
        dataset_dir: str | Path,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        unused(type(self).__name__, cache=cache)
        files = _files(dataset_dir, usage, self.PATTERN, ("train", "test", "valid"))
        super().__init__(files, num_samples, num_parallel_workers, shuffle, num_shards, shard_id)


class PennTreebankDataset(_TextFolder):
    """The Penn Treebank: lines of `ptb.train.txt` and the like, as `text`."""

    PATTERN = "ptb.{}.txt"


class WikiTextDataset(_TextFolder):
    """WikiText: lines of `wiki.train.tokens` and the like, as `text`."""

    PATTERN = "wiki.{}.tokens"
