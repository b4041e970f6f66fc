"""Texts as words: NumPy arrays of strings."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import enum
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msc.dataset.text.vocabulary import Vocab
from msc.dataset.transforms.arguments import array, integer, refuse
from msc.dataset.transforms.general import Transform
from msc.dataset.values import Array, Ragged, Values
from msc.frontend.dtypes import as_dtype


class NormalizeForm(enum.StrEnum):
    """Forms of Unicode."""

    NONE = ""
    NFC = "NFC"
    NFKC = "NFKC"
    NFD = "NFD"
    NFKD = "NFKD"


class TextTransform(Transform):
    """Base: a function of each string of an array, or of one string."""

    def text(self, text: str) -> str:
        """The new string."""
        raise NotImplementedError

    RAGGED_RANKS = (0, 1)

    def over_rows(self, values: Ragged) -> Values:
        return values.with_items(list(map(self.text, _texts(self._kind, values))))

    def __call__(self, *values: Any) -> Array:
        found = strings(self._kind, values[0])
        return np.asarray([self.text(str(item)) for item in found.reshape(-1)], np.str_).reshape(found.shape)


class Tokenizer(Transform):
    """Base: the words of a string."""

    def words(self, text: str) -> list[str]:
        """The words."""
        raise NotImplementedError

    RAGGED_RANKS = (0,)

    def over_rows(self, values: Ragged) -> Values:
        return Ragged.joined([self.words(text) or [""] for text in _texts(self._kind, values)])

    def __call__(self, *values: Any) -> Array:
        found = strings(self._kind, values[0])
        words = [word for item in found.reshape(-1) for word in self.words(str(item))]
        return np.asarray(words or [""], np.str_)


def _texts(transform: str, values: Ragged) -> list[str]:
    """The items, which are strings. Raises MSC0874."""
    items = values.items
    return strings(transform, items).tolist() if isinstance(items, np.ndarray) else items


def strings(transform: str, value: Any) -> Array:
    """An array of strings. Raises MSC0874."""
    found = array(transform, value)
    if found.dtype.kind == "S":
        found = np.char.decode(found, "utf-8")
    if found.dtype.kind != "U":
        refuse(transform, "the value", str(found.dtype), "strings", is_type=True)
    return found


class CaseFold(TextTransform):
    """Without the case of letters."""

    def text(self, text: str) -> str:
        return text.casefold()


class NormalizeUTF8(TextTransform):
    """In a form of Unicode."""

    def __init__(self, normalize_form: NormalizeForm = NormalizeForm.NFKC) -> None:
        self._form: Any = NormalizeForm(normalize_form).value

    def text(self, text: str) -> str:
        return unicodedata.normalize(self._form, text) if self._form else text


class RegexReplace(TextTransform):
    """With what a pattern matches replaced."""

    def __init__(self, pattern: str, replace: str, replace_all: bool = True) -> None:
        self._pattern, self._replace, self._count = _pattern("RegexReplace", pattern), replace, int(not replace_all)

    def text(self, text: str) -> str:
        return self._pattern.sub(self._replace, text, self._count)


def _pattern(transform: str, pattern: Any) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, TypeError):
        refuse(transform, "pattern", pattern, "a regular expression")


class WhitespaceTokenizer(Tokenizer):
    """Words between white space."""

    def words(self, text: str) -> list[str]:
        return text.split()


class UnicodeCharTokenizer(Tokenizer):
    """Characters."""

    def words(self, text: str) -> list[str]:
        return list(text)


class RegexTokenizer(Tokenizer):
    """What stands between matches of a pattern; matches of `keep_delim_pattern` are words as well."""

    def __init__(self, delim_pattern: str, keep_delim_pattern: str = "") -> None:
        self._delimiter = _pattern("RegexTokenizer", delim_pattern)
        self._kept = _pattern("RegexTokenizer", keep_delim_pattern) if keep_delim_pattern else None

    def words(self, text: str) -> list[str]:
        found: list[str] = []
        place = 0
        for match in self._delimiter.finditer(text):
            found.append(text[place : match.start()])
            if self._kept is not None and self._kept.fullmatch(match.group()):
                found.append(match.group())
            place = match.end()
        return [word for word in (*found, text[place:]) if word]


class BasicTokenizer(Tokenizer):
    """Words, punctuation and Chinese characters each for itself, as BERT begins."""

    _WORD = re.compile(r"\[[A-Z]+\]|[一-鿿㐀-䶿]|[^\W_一-鿿㐀-䶿]+|[^\w\s]|_")

    def __init__(self, lower_case: bool = False, preserve_unused_token: bool = True) -> None:
        self._lower, self._marks = bool(lower_case), bool(preserve_unused_token)

    def words(self, text: str) -> list[str]:
        found: list[str] = []
        for word in self._WORD.findall(text):
            if word.startswith("[") and len(word) > 1 and not self._marks:
                found += ["[", word[1:-1].lower() if self._lower else word[1:-1], "]"]
            else:
                found.append(self._folded(word) if self._lower and not word.startswith("[") else word)
        return found

    def _folded(self, word: str) -> str:
        return "".join(c for c in unicodedata.normalize("NFD", word.lower()) if unicodedata.category(c) != "Mn")


class WordpieceTokenizer(Tokenizer):
    """Words in the longest pieces of a vocabulary; pieces after the first begin with `suffix_indicator`."""

    def __init__(
        self,
        vocab: Vocab,
        suffix_indicator: str = "##",
        max_bytes_per_token: int = 100,
        unknown_token: str = "[UNK]",
    ) -> None:
        self._vocab, self._mark, self._unknown = vocab, suffix_indicator, unknown_token
        self._longest = integer("WordpieceTokenizer", "max_bytes_per_token", max_bytes_per_token)

    def words(self, text: str) -> list[str]:
        found: list[str] = []
        place = 0
        while place < len(text) and len(text.encode()) <= self._longest:
            mark = self._mark if place else ""
            ends = range(len(text), place, -1)
            end = next((e for e in ends if self._vocab.number(mark + text[place:e]) is not None), None)
            if end is None:
                break
            found.append(mark + text[place:end])
            place = end
        return found if place == len(text) and found else [self._unknown or text]


class BertTokenizer(Tokenizer):
    """BasicTokenizer, then WordpieceTokenizer."""

    def __init__(
        self,
        vocab: Vocab,
        suffix_indicator: str = "##",
        max_bytes_per_token: int = 100,
        unknown_token: str = "[UNK]",
        lower_case: bool = False,
    ) -> None:
        self._basic = BasicTokenizer(lower_case)
        self._pieces = WordpieceTokenizer(vocab, suffix_indicator, max_bytes_per_token, unknown_token)

    def words(self, text: str) -> list[str]:
        return [piece for word in self._basic.words(text) for piece in self._pieces.words(word)]


class PythonTokenizer(Tokenizer):
    """What a function makes of a string."""

    def __init__(self, tokenizer: Callable[[str], Sequence[str]]) -> None:
        if not callable(tokenizer):
            refuse("PythonTokenizer", "tokenizer", tokenizer, "a function", is_type=True)
        self._tokenizer = tokenizer

    RAGGED_RANKS = ()  # It is a user's function, which is called once for each row.

    def words(self, text: str) -> list[str]:
        return [str(word) for word in self._tokenizer(text)]


class ToNumber(Transform):
    """Strings as numbers of an element type."""

    def __init__(self, data_type: Any) -> None:
        self._dtype = as_dtype(data_type).numpy

    RAGGED_RANKS = (0, 1)

    def __call__(self, *values: Any) -> Array:
        found = strings("ToNumber", values[0])
        try:
            return found.astype(np.float64 if self._dtype.kind == "f" else np.int64).astype(self._dtype)
        except (ValueError, OverflowError):
            refuse("ToNumber", "the value", str(found), f"numbers of type {self._dtype}")


class Truncate(Transform):
    """At most so many words."""

    def __init__(self, max_seq_len: int) -> None:
        self._length = integer("Truncate", "max_seq_len", max_seq_len)

    RAGGED_RANKS = (1,)

    def over_rows(self, values: Ragged) -> Values:
        return values.cut(self._length)

    def __call__(self, *values: Any) -> Array:
        cut = array("Truncate", values[0])[: self._length]
        return np.asarray(cut.tolist(), np.str_) if cut.dtype.kind == "U" else cut  # As wide as what is left.


class TruncateSequencePair(Transform):
    """Two sequences that have at most so many words together: the longer one is cut."""

    def __init__(self, max_length: int) -> None:
        self._length = integer("TruncateSequencePair", "max_length", max_length)

    def __call__(self, *values: Any) -> tuple[Array, Array]:
        first, second = (array("TruncateSequencePair", value) for value in values)
        while len(first) + len(second) > self._length:
            first, second = (first[:-1], second) if len(first) > len(second) else (first, second[:-1])
        return first, second


class SlidingWindow(Transform):
    """All windows of a width: one axis more."""

    def __init__(self, width: int, axis: int = 0) -> None:
        self._width, self._axis = integer("SlidingWindow", "width", width), axis

    def __call__(self, *values: Any) -> Array:
        found = array("SlidingWindow", values[0])
        if found.shape[self._axis] < self._width:
            refuse("SlidingWindow", "the value", f"of {found.shape[self._axis]} elements", f"{self._width} or more")
        return np.moveaxis(np.lib.stride_tricks.sliding_window_view(found, self._width, self._axis), self._axis, 0)


class Ngram(Transform):
    """Runs of n words, joined by a separator."""

    def __init__(self, n: Any, separator: str = " ") -> None:
        self._sizes = [integer("Ngram", "n", size) for size in (n if isinstance(n, list | tuple) else [n])]
        self._separator = separator

    def __call__(self, *values: Any) -> Array:
        words = [str(word) for word in strings("Ngram", values[0]).reshape(-1)]
        found = [self._separator.join(words[k : k + n]) for n in self._sizes for k in range(len(words) - n + 1)]
        return np.asarray(found or [""], np.str_)
