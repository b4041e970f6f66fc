"""Vocabularies, and words as numbers."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self, cast

import numpy as np

from msc.dataset.arguments import files, known, optional_count
from msc.dataset.base import Dataset
from msc.dataset.runs import EpochRun
from msc.dataset.text_files import lines
from msc.dataset.transforms.arguments import array, refuse
from msc.dataset.transforms.general import Transform
from msc.dataset.values import Array, Ragged, Values
from msc.frontend.dtypes import as_dtype, int32


class Vocab:
    """Words with numbers; made by `from_list`, `from_dict`, `from_file` or `from_dataset`."""

    FOR_MSC = ("number",)

    def __init__(self, numbers: dict[str, int]) -> None:
        self._numbers = numbers
        self._words = {number: word for word, number in numbers.items()}

    @classmethod
    def from_list(
        cls, word_list: Sequence[str], special_tokens: Sequence[str] | None = None, special_first: bool = True
    ) -> Self:
        """Words in their order; special ones in front, or behind."""
        special = list(special_tokens or ())
        words = [*special, *word_list] if special_first else [*word_list, *special]
        if len(set(words)) != len(words):
            twice = next(word for word, times in Counter(words).items() if times > 1)
            refuse("Vocab", "word_list", twice, "words and special tokens that differ; this one comes twice")
        return cls({word: number for number, word in enumerate(words)})

    @classmethod
    def from_dict(cls, word_dict: dict[str, int]) -> Self:
        """Words with the numbers of a dictionary."""
        wrong = [n for n in word_dict.values() if isinstance(n, bool) or not isinstance(n, int) or n < 0]  # pyright: ignore[reportUnnecessaryIsInstance]
        if wrong or len(set(word_dict.values())) != len(word_dict):
            refuse("Vocab", "word_dict", word_dict, "words with integers from 0 on that differ")
        return cls(dict(word_dict))

    @classmethod
    def from_file(
        cls,
        file_path: str | Path,
        delimiter: str = "",
        vocab_size: int | None = None,
        special_tokens: Sequence[str] | None = None,
        special_first: bool = True,
    ) -> Self:
        """The words of a file, one in a line; with a delimiter what stands before it."""
        found = lines(files("file_path", file_path)[0])
        words = [line.removesuffix("\r").split(delimiter)[0] if delimiter else line.strip() for line in found]
        limit = optional_count("vocab_size", vocab_size)
        return cls.from_list([word for word in words if word][:limit], special_tokens, special_first)

    @classmethod
    def from_dataset(
        cls,
        dataset: Dataset,
        columns: Any = None,
        freq_range: tuple[int | None, int | None] | None = None,
        top_k: int | None = None,
        special_tokens: Sequence[str] | None = None,
        special_first: bool = True,
    ) -> Self:
        """The words of columns of a data set, the most frequent ones first, those of one frequency in their order."""
        wanted = dataset.columns if columns is None else ((columns,) if isinstance(columns, str) else tuple(columns))
        places, counts = known("columns", wanted, dataset.columns), Counter[str]()
        for row in dataset.rows(EpochRun(0)):
            for place in places:
                counts.update(str(word) for word in np.asarray(row[place]).reshape(-1))
        low, high = freq_range or (None, None)
        kept = {w: n for w, n in counts.items() if (low is None or n >= low) and (high is None or n <= high)}
        words = sorted(kept, key=lambda word: (-kept[word], word))[: optional_count("top_k", top_k)]
        return cls.from_list(words, special_tokens, special_first)

    def vocab(self) -> dict[str, int]:
        """The number of each word."""
        return dict(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, word: str) -> int | None:
        """The number of a word; None if it is not in here."""
        return self._numbers.get(word)

    def tokens_to_ids(self, tokens: Any) -> Any:
        """The number of a word, or of each one of a list; -1 for those that are not in here."""
        if isinstance(tokens, str):
            return self._numbers.get(tokens, -1)
        return [self._numbers.get(str(word), -1) for word in cast("Iterable[Any]", tokens)]

    def ids_to_tokens(self, ids: Any) -> Any:
        """The word of a number, or of each one of a list; empty for those that are not in here."""
        if isinstance(ids, int | np.integer):
            return self._words.get(int(ids), "")
        return [self._words.get(int(number), "") for number in cast("Iterable[Any]", ids)]


class _Numbers(dict[str, int]):
    """The numbers of words, with one for those that have none."""

    unknown: int | None = None

    def __missing__(self, word: str) -> int:
        if self.unknown is None:
            refuse("Lookup", "a word", word, "words of the vocabulary; unknown_token says what others are")
        return self.unknown


class Lookup(Transform):
    """Words as numbers of a vocabulary; `unknown_token` is the word for those that are not in it."""

    def __init__(self, vocab: Vocab, unknown_token: str | None = None, data_type: Any = int32) -> None:
        if not isinstance(vocab, Vocab):  # pyright: ignore[reportUnnecessaryIsInstance]
            refuse("Lookup", "vocab", vocab, "a Vocab", is_type=True)
        self._numbers, self._dtype = _Numbers(vocab.vocab()), as_dtype(data_type).numpy
        self._numbers.unknown = None if unknown_token is None else vocab.number(unknown_token)
        if unknown_token is not None and self._numbers.unknown is None:
            refuse("Lookup", "unknown_token", unknown_token, "a word of the vocabulary")

    def __call__(self, *values: Any) -> Array:
        words = array("Lookup", values[0])
        return self._found(words.reshape(-1).tolist()).reshape(words.shape)

    RAGGED_RANKS = (0, 1)

    def over_rows(self, values: Ragged) -> Values:
        items = values.items
        return values.with_items(self._found(items.tolist() if isinstance(items, np.ndarray) else items))

    def _found(self, words: Sequence[Any]) -> Array:
        return np.fromiter(map(self._numbers.__getitem__, words), self._dtype, len(words))
