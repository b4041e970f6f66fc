"""Data sets: reading, transforming, batching and shuffling, as MindSpore's `dataset`."""

# isort: off
# fmt: off
from typing import TYPE_CHECKING
from importlib import import_module

from msc.dataset import config
from msc.dataset.base import Dataset
from msc.dataset.batches import BatchDataset, BatchInfo
from msc.dataset.images import (
    Cifar100Dataset, Cifar10Dataset, FashionMnistDataset, ImageFolderDataset, KMnistDataset, MnistDataset,
)
from msc.dataset.mindrecord import MindDataset
from msc.dataset.named_texts import (
    AGNewsDataset, AmazonReviewDataset, DBpediaDataset, PennTreebankDataset, SogouNewsDataset, WikiTextDataset,
    YahooAnswersDataset, YelpReviewDataset,
)
from msc.dataset.record_files import Schema, TFRecordDataset
from msc.dataset.samplers import (
    DistributedSampler, PKSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, SubsetSampler,
    WeightedRandomSampler,
)
from msc.dataset.sources import DatasetCache, GeneratorDataset, NumpySlicesDataset, PaddedDataset
from msc.dataset.sounds import GTZANDataset, LJSpeechDataset, SpeechCommandsDataset, YesNoDataset
from msc.dataset.stages import ConcatDataset, RepeatDataset
from msc.dataset.tables import ParquetDataset
from msc.dataset.text_files import CSVDataset, Shuffle, TextFileDataset
from msc.dataset.zipping import zip
from msc.frontend.boundary import publish
from msc.frontend.errors import missing_name

__all__ = [
    "AGNewsDataset", "AmazonReviewDataset", "BatchDataset", "BatchInfo", "CSVDataset", "Cifar10Dataset",
    "Cifar100Dataset", "ConcatDataset", "DBpediaDataset", "Dataset", "DatasetCache", "DistributedSampler",
    "FashionMnistDataset", "GTZANDataset", "GeneratorDataset", "ImageFolderDataset", "KMnistDataset", "LJSpeechDataset",
    "MindDataset", "MnistDataset", "NumpySlicesDataset", "PKSampler", "PaddedDataset", "ParquetDataset",
    "PennTreebankDataset", "RandomSampler", "RepeatDataset", "Sampler", "Schema", "SequentialSampler", "Shuffle",
    "SogouNewsDataset", "SpeechCommandsDataset", "SubsetRandomSampler", "SubsetSampler", "TFRecordDataset",
    "TextFileDataset", "WeightedRandomSampler", "WikiTextDataset", "YahooAnswersDataset", "YelpReviewDataset",
    "YesNoDataset", "config", "zip",
]  # fmt: skip

publish(globals(), [name for name in __all__ if name not in ("Shuffle", "config")], "dataset")


if TYPE_CHECKING:
    from msc.dataset import audio as audio
    from msc.dataset import text as text
    from msc.dataset import transforms as transforms
    from msc.dataset import vision as vision

else:  # a checker knows the names that there are

    def __getattr__(name: str) -> object:
        if name in ("audio", "text", "transforms", "vision"):
            return import_module(f"msc.dataset.{name}")
        raise missing_name("msc.dataset", name, [*__all__, "audio", "text", "transforms", "vision"])
