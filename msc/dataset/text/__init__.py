"""Transforms of texts, as MindSpore's `dataset.text`."""

# isort: off
# fmt: off
from typing import TYPE_CHECKING
from msc.dataset.text.tokens import (
    BasicTokenizer, BertTokenizer, CaseFold, Ngram, NormalizeForm, NormalizeUTF8, PythonTokenizer, RegexReplace,
    RegexTokenizer, SlidingWindow, ToNumber, Truncate, TruncateSequencePair, UnicodeCharTokenizer,
    WhitespaceTokenizer, WordpieceTokenizer,
)
from msc.dataset.text.vocabulary import Lookup, Vocab
from msc.frontend.boundary import publish
from msc.frontend.errors import missing_name

__all__ = [
    "BasicTokenizer", "BertTokenizer", "CaseFold", "Lookup", "Ngram", "NormalizeForm", "NormalizeUTF8",
    "PythonTokenizer", "RegexReplace", "RegexTokenizer", "SlidingWindow", "ToNumber", "Truncate",
    "TruncateSequencePair", "UnicodeCharTokenizer", "Vocab", "WhitespaceTokenizer", "WordpieceTokenizer",
]

publish(globals(), [name for name in __all__ if name != "NormalizeForm"], "dataset.text")


if not TYPE_CHECKING:  # a checker knows the names that there are

    def __getattr__(name: str) -> object:
        raise missing_name("msc.dataset.text", name, __all__)
