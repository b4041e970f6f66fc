"""Pipeline text such as `pass-a, pass-b{option=1 tiles=2,3}` to pass objects, with carets for what is wrong in it."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any, NoReturn, get_type_hints

from xdsl.passes import ModulePass, PassOptionInfo, get_pass_option_infos
from xdsl.utils.arg_spec import ArgSpec
from xdsl.utils.hints import isa

from msc.driver.passes.registry import UPSTREAM_PURPOSES, all_passes, load_pass
from msc.ir.locations import SourceText
from msc.support.diagnostics import MscError, did_you_mean

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>[-+]?[0-9]++(?:\.[0-9]*+)?(?:[eE][-+]?[0-9]++)?(?![\w-]))
    | (?P<name>[\w][\w.-]*+)
    | (?P<string>"[^"\n]*+")
    | (?P<mark>[{}=,])
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)

Value = str | int | bool | float
_WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number of at least {least}",
    int | None: "a whole number of at least {least}",
    float: "a number",
    str: "a name",
    tuple[int, ...]: "whole numbers of at least {least}",
    tuple[str, ...]: "names",
}
"""What people write for an option, by its type."""


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    stop: int


@dataclass(frozen=True)
class _Request:
    """One pass as written: its name's place, its options, and the place of each option's name."""

    name: _Token
    options: dict[str, tuple[Value, ...]]
    places: dict[str, _Token]


def build_pipeline(text: str) -> tuple[ModulePass, ...]:
    """The passes that `text` asks for. Raises MSC0400 (syntax), MSC0401 (unknown pass) and MSC0402 (bad option)."""
    source = SourceText(text, "<pipeline>")
    return tuple(_instantiate(request, source) for request in _Parser(source).parse())


def pass_summary(name: str) -> str:
    """One line about a registered pass: its name, its options and what it does."""
    chosen = load_pass(name)
    purpose = UPSTREAM_PURPOSES.get(name) or (chosen.__doc__ or "").strip().partition("\n")[0]
    return f"{name}: {purpose} ({_options_note(chosen)})"


def _instantiate(request: _Request, source: SourceText) -> ModulePass:
    name = request.name
    known = all_passes()
    if name.text not in known:
        help_line = did_you_mean(name.text, known) or "msc opt --show-passes lists the passes"
        message = f"there is no pass '{name.text}'"
        raise MscError(source.diagnostic("MSC0401", message, name.start, name.stop, help=help_line))
    chosen = load_pass(name.text)
    _check_option_names(request, chosen, source)
    _check_option_values(request, chosen, source)
    try:
        return chosen.from_spec(ArgSpec(name.text, dict(request.options)))
    except (ValueError, TypeError) as error:
        place = next(iter(request.places.values()), name)
        raise MscError(
            source.diagnostic(
                "MSC0402", f"{name.text}: {error}", place.start, place.stop, notes=(_options_note(chosen),)
            )
        ) from error


def _check_option_names(request: _Request, chosen: type[ModulePass], source: SourceText) -> None:
    known = {field.name for field in fields(chosen) if field.init}
    for option, place in request.places.items():
        if option.replace("-", "_") not in known:
            message = f"pass '{chosen.name}' has no option '{option}'"
            help_line = did_you_mean(option, (name.replace("_", "-") for name in known))
            note = _options_note(chosen)
            raise MscError(
                source.diagnostic("MSC0402", message, place.start, place.stop, notes=(note,), help=help_line)
            )


def _check_option_values(request: _Request, chosen: type[ModulePass], source: SourceText) -> None:
    kinds, leasts = get_type_hints(chosen), _least_numbers(chosen)
    for option, place in request.places.items():
        values, field = request.options[option], option.replace("-", "_")
        kind, least = kinds[field], leasts[field]
        if _fits(values, kind) and not any(isinstance(value, int) and value < least for value in values):
            continue
        given = ",".join(str(value).lower() if isinstance(value, bool) else str(value) for value in values)
        taken = _WORDS.get(kind, str(kind)).format(least=least)
        message = f"option '{option}' of '{chosen.name}' takes {taken}, not '{given}'"
        note = _options_note(chosen)
        raise MscError(source.diagnostic("MSC0402", message, place.start, place.stop, notes=(note,)))


def _least_numbers(chosen: type[ModulePass]) -> dict[str, int]:
    """The least whole number that each option takes: options count or number things, so none is negative.

    An option for which zero is senseless says so: `field(default=8, metadata={"least": 1})`.
    """
    return {field.name: field.metadata.get("least", 0) for field in fields(chosen)}


def _fits(values: tuple[Value, ...], kind: Any) -> bool:
    """Whether the values of an option are of its kind; Python's bool is an int, too."""
    if any(isinstance(value, bool) for value in values) and kind is not bool:
        return False
    return isa(values, kind) or (len(values) == 1 and isa(values[0], kind))


def _options_note(chosen: type[ModulePass]) -> str:
    options = ", ".join(map(_option_text, get_pass_option_infos(chosen)))
    return f"options of '{chosen.name}': {options or 'none'}"


def _option_text(info: PassOptionInfo) -> str:
    default = "" if info.default_value is None else f" = {info.default_value}"
    kind = info.expected_type.strip("'")
    return f"{info.name.replace('_', '-')}: {kind}{default}"


class _Parser:
    """Recursive descent over the tokens; spaces are free everywhere."""

    def __init__(self, source: SourceText) -> None:
        self._source = source
        self._tokens = self._tokenise()
        self._next = 0

    def parse(self) -> list[_Request]:
        """Grammar: pipeline ::= (pass (`,` pass)*)?"""
        requests: list[_Request] = []
        if self._peek().kind == "end":
            return requests
        requests.append(self._parse_pass())
        while self._accept(","):
            requests.append(self._parse_pass())
        self._expect_end()
        return requests

    def _parse_pass(self) -> _Request:
        """Grammar: pass ::= name (`{` option* `}`)?"""
        request = _Request(self._take("name", "the name of a pass"), {}, {})
        if self._accept("{"):
            while not self._accept("}"):
                self._parse_option(request)
        return request

    def _parse_option(self, request: _Request) -> None:
        """Grammar: option ::= name (`=` value (`,` value)*)? `,`?; an option without a value is true."""
        name = self._take("name", "the name of an option or '}'")
        values: list[Value] = []
        if self._accept("="):
            values.append(self._parse_value())
            while self._accept(",") and not self._starts_option():
                values.append(self._parse_value())
        else:
            values.append(True)
            self._accept(",")
        request.options[name.text] = tuple(values)
        request.places[name.text] = name

    def _parse_value(self) -> Value:
        token = self._peek()
        if token.kind not in ("number", "name", "string"):
            self._fail(token, "a value")
        self._next += 1
        match token.kind:
            case "number":
                return float(token.text) if re.search(r"[.eE]", token.text) else int(token.text)
            case "string":
                return token.text[1:-1]
            case _:
                return token.text == "true" if token.text in ("true", "false") else token.text

    def _starts_option(self) -> bool:
        if self._peek().text == "}":
            return True
        following = self._tokens[self._next + 1 : self._next + 2]
        return self._peek().kind == "name" and bool(following) and following[0].text == "="

    def _tokenise(self) -> list[_Token]:
        tokens: list[_Token] = []
        position = 0
        while not tokens or tokens[-1].kind != "end":
            match = _TOKEN.match(self._source.text, position)
            if match is None or match.lastgroup is None:
                position = len(self._source.text) - len(self._source.text[position:].lstrip())
                self._fail(_Token("", self._source.text[position], position, position + 1), "a name or a mark")
            kind = match.lastgroup
            tokens.append(_Token(kind, match.group(kind), match.start(kind), match.end()))
            position = match.end()
        return tokens

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _accept(self, mark: str) -> bool:
        found = self._peek().kind == "mark" and self._peek().text == mark
        self._next += found
        return found

    def _take(self, kind: str, expected: str) -> _Token:
        token = self._peek()
        if token.kind != kind:
            self._fail(token, expected)
        self._next += 1
        return token

    def _expect_end(self) -> None:
        if self._peek().kind != "end":
            self._fail(self._peek(), "',' or the end")

    def _fail(self, token: _Token, expected: str) -> NoReturn:
        found = f"'{token.text}'" if token.text else "the end"
        message = f"expected {expected} in the pipeline, found {found}"
        raise MscError(self._source.diagnostic("MSC0400", message, token.start, token.stop))
