"""What a format of model files is. Loads nothing heavy: a format's methods do, when a file is read or written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

from msc.support.diagnostics import Diagnostic, MscError

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdsl.context import Context

    from msc.dialects.arrays import Array
    from msc.importers.imported import Imported
    from msc.support.outputs import OutputSet


@dataclass(frozen=True)
class Reading:
    """What a user says of a model beyond its file; a format ignores what its files do not leave open.

    `dims` has the sizes of open dimensions, the largest of those in `open_dims`, which each call decides; `shapes` has
    whole shapes of inputs. `texts` and `values` fix inputs, as text ("0,1") and as arrays. Where a file is a program,
    `types` are the types of its arguments ("1x3xf32") and `init` is a file of its weights.
    """

    dims: Mapping[str, int] = field(default_factory=dict[str, int])
    open_dims: Collection[str] = ()
    has_ranges: bool = False
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    values: Mapping[str, Array] = field(default_factory=dict[str, "Array"])
    types: Mapping[str, str] = field(default_factory=dict[str, str])
    init: Path | None = None
    context: Callable[[], Context] | None = None
    """Makes a context with the dialects of all stages."""


@dataclass(frozen=True)
class FileTensor:
    """An input or output as a file declares it: a shape of numbers and names, None where the rank is open, too.

    `codes` names the type of ml_dtypes whose codes the elements are, if they are. `reals` are the scale and the zero
    point of integers that stand for reals.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...] | None
    codes: str = ""
    reals: tuple[float, int] | None = None


class Reference(Protocol):
    """Another program that runs a file of the format: what `msc verify --against` compares with."""

    title: str

    def fixed(self) -> Mapping[str, Array]:
        """The inputs that the user fixed, as arrays."""
        ...

    def outputs(self) -> Sequence[str]:
        """The names of the results."""
        ...

    def results(self, inputs: Mapping[str, Array]) -> Sequence[Array]:
        """The results. Raises MSC0721."""
        ...

    def with_all_values(self) -> tuple[Reference, Imported, Mapping[str, str]]:
        """The same model with every value between its operations as an output; what computes each value, by name."""
        ...


class Format(ABC):
    """A format of model files. Other packages use these members; `docs/formats.md` tells how to write one."""

    name: ClassVar[str]
    """What `--emit` and `msc.export` call it."""
    title: ClassVar[str]
    """What one of its files is: "an ONNX model"."""
    extensions: ClassVar[tuple[str, ...]]
    """The endings of its files' names, in small letters."""
    lacks: ClassVar[str]
    """What it cannot say."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Packages that reading and writing take."""
    holds: ClassVar[Literal["ir", "graph", "program", "weights"]] = "graph"
    """A module of any stage; a graph; a program that is run to get a graph; or weights without a graph."""
    fixes_inputs: ClassVar[bool] = False
    """Whether values may be given to inputs, which then are inputs no more."""
    references: ClassVar[Mapping[str, str]] = {}
    """Packages that run its files, and what each is called."""

    @property
    def writes(self) -> bool:
        """Whether models are written in it."""
        return type(self).write is not Format.write

    def takes(self, model: str) -> bool:
        """Whether a file is of this format by its name, in capitals too."""
        return model.lower().endswith(self.extensions)

    def takes_data(self, data: bytes) -> bool:
        """Whether bytes in memory are a model of this format."""
        del data
        return False

    def check_packages(self) -> None:
        """Raise MSC0717 without a package that it takes."""
        for package in self.packages:
            self.check_package(package, f"reading {self.title.partition(' ')[2].removesuffix(' model')} files")

    def check_package(self, package: str, purpose: str) -> None:
        """Raise MSC0717 without a package."""
        if find_spec(package) is None:
            message = f"{purpose} needs the package '{package}'"
            raise MscError(Diagnostic("MSC0717", message, help=f"pip install {package}"))

    @abstractmethod
    def read(self, model: str, how: Reading) -> Imported:
        """The module and the weights of a file. Raises MscError for everything that is wrong with it."""

    def tensors(self, model: str, what: Literal["input", "output"]) -> Sequence[FileTensor] | None:
        """The inputs or outputs as the file declares them; None: those of the module that `read` makes."""
        del model, what
        return None

    def write(self, model: Imported, path: Path, files: OutputSet) -> None:
        """Write a model at the graph stage, without calls and with known types. Raises MSC0720 for what it lacks."""
        del model, path, files
        message = f"msc does not write {self.title.partition(' ')[2]} files"
        raise MscError(Diagnostic("MSC0720", message))

    def parameters(self, path: Path) -> Mapping[str, tuple[str, int]]:
        """Of a file of weights: the type of each parameter, and its bytes."""
        raise NotImplementedError(path)

    def operators(self) -> Iterator[str]:
        """The names of the operators that it reads."""
        yield from ()

    def reference(self, package: str, model: str, how: Reading) -> Reference:
        """A file run by one of `references`."""
        raise NotImplementedError(package, model, how)
