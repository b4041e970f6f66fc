"""What a shell proposes behind options and arguments. It calls `msc` for that, so nothing heavy is loaded first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import click
from click.shell_completion import CompletionItem

Completion: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def files(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files and folders, which the shell knows itself."""
    return [CompletionItem(incomplete, type="file")]


def folders(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Folders alone."""
    return [CompletionItem(incomplete, type="dir")]


def one_of(words: Callable[[], Iterable[str]]) -> Completion:
    """One of some words."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(word) for word in words() if word.startswith(incomplete)]

    return complete


def several_of(words: Callable[[], Iterable[str]]) -> Completion:
    """Several of some words with commas between them."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, last = incomplete.rpartition(",")
        given = before.split(",")
        fitting = (word for word in words() if word.startswith(last) and word not in given)
        return [CompletionItem(f"{before}{comma}{word}") for word in fitting]

    return complete


def words_or_files(words: Callable[[], Iterable[str]]) -> Completion:
    """One of some words, or a file."""
    known = one_of(words)

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return known(context, parameter, incomplete) or files(context, parameter, incomplete)

    return complete


def marches() -> Sequence[str]:
    """Machines of all back ends."""
    from msc.backends.registry import found_backends

    return [machine for backend in found_backends() for machine in backend.machines()]


def targets() -> Sequence[str]:
    """Back ends."""
    from msc.backends.registry import backend_names

    return backend_names()


def forms() -> Sequence[str]:
    """Forms of an output."""
    from msc.backends.registry import found_backends
    from msc.driver.artifacts.forms import forms_of

    return list(dict.fromkeys(form for backend in found_backends() for form in forms_of(backend)))


def stages() -> Sequence[str]:
    """Stages that are text."""
    from msc.backends.registry import found_backends

    return list(dict.fromkeys(stage.name for backend in found_backends() for stage in backend.table.ir))


def switches() -> Iterable[str]:
    """Optimisations."""
    from msc.backends.registry import found_backends

    return list(dict.fromkeys(name for backend in found_backends() for name in backend.all_switches))


def passes() -> Iterable[str]:
    """Passes."""
    from msc.driver.passes.registry import all_passes

    return all_passes()


def subjects() -> Iterable[str]:
    """Codes and operations that can be explained."""
    from msc.driver.reports.operation_reference import operation_names
    from msc.support.codes import CODES

    return (*CODES, *operation_names())
