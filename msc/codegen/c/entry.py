"""The entry function: `int model_run(const float *image, float *logits, void *workspace)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.dialects import memref
from xdsl.dialects.func import FuncOp

from msc.codegen.c.control_flow import EntryBody
from msc.codegen.c.dead_code import dead_values
from msc.codegen.c.kernels import Kernel
from msc.codegen.c.lines import Lines, wrap_prototype
from msc.codegen.c.names import NameScope
from msc.codegen.c.plan import Call, EntryPlan, MemoryPlace
from msc.codegen.c.prelude import Prelude
from msc.codegen.c.types import INDEX_TYPE, memory_name
from msc.runtime.program import Signature, TensorSpec
from msc.support.escaping import c_comment

_API_TYPES = {
    "f32": "float", "f64": "double", "f16": "uint16_t", "bf16": "uint16_t", "i1": "uint8_t",
    **{f"{sign}i{bits}": f"{'u' if sign else ''}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip
"""C types of the signature; f16 and bf16 are bits, so that any C and C++ compiler reads the header."""


def api_parameters(signature: Signature) -> list[str]:
    """Declarations of the tensors, the sizes and the workspace, in the order of the call."""
    inputs = [f"{'' if t.result is not None else 'const '}{_API_TYPES[t.dtype]} *{t.c_name}" for t in signature.inputs]
    outputs = [f"{_API_TYPES[t.dtype]} *{t.c_name}" for t in signature.outputs]
    sizes = [f"{INDEX_TYPE} {size.c_name}" for size in signature.sizes]
    return [*inputs, *outputs, *sizes, "void *workspace"]


def run_prototype(signature: Signature) -> str:
    """The prototype of the function, without its semicolon."""
    return wrap_prototype(f"int {signature.symbol}(", api_parameters(signature))


def profile_prototype(signature: Signature) -> str:
    """The prototype of the same with a clock."""
    return wrap_prototype(f"int {signature.name}_profile(", [*api_parameters(signature), "double *seconds"])


@dataclass
class EntryEmitter:
    """Emits an entry function, `<name>_run`, and `<name>_profile`, which is the same with a clock around every call.

    One that is `hooked` says before each call which it is, through a macro that a program may define.
    """

    main: FuncOp
    plan: EntryPlan
    signature: Signature
    kernels: Mapping[str, Kernel]
    prelude: Prelude
    flush_subnormals: bool = False
    hooked: bool = False
    scope: NameScope = field(default_factory=NameScope)
    names: dict[MemoryPlace, str] = field(default_factory=dict[MemoryPlace, str])
    entries: dict[int, str] = field(default_factory=dict[int, str])

    def run(self) -> str:
        """`<name>_run`."""
        lines = Lines()
        self._open(lines, run_prototype(self.signature), profiled=False)
        if self.hooked:
            positions, hook = iter(range(len(self.plan.calls))), f"{self.signature.name.upper()}_HOOK"
            self._statements(lines, lambda call: f"{hook}({next(positions)});\n{self._call(call)}")
            lines.add(f"{hook}({len(self.plan.calls)});")
        else:
            self._statements(lines, self._call)
        return self._close(lines)

    def profile(self) -> str:
        """`<name>_profile`: adds the seconds of call k to `seconds[k]`."""
        lines = Lines()
        self._open(lines, profile_prototype(self.signature), profiled=True)
        lines.add("double start = msc_now();")
        positions = iter(range(len(self.plan.calls)))
        self._statements(
            lines, lambda call: f"{self._call(call)}\nstart = msc_lap(start, &seconds[{next(positions)}]);"
        )
        return self._close(lines)

    def _statements(self, lines: Lines, call: Callable[[Call], str]) -> None:
        calls = iter(self.plan.calls)
        body = EntryBody(
            self.prelude,
            lines,
            self.scope,
            dead=dead_values(self.main),
            call=lambda: call(next(calls)),
            places=self.plan.places,
            entry=self._entry,
        )
        for value, place in self.plan.places.items():
            if place.entry:
                continue
            if place.role in ("input", "output") or place in self.names:
                body.bind_place(value, self._argument(place), place)
        body.block(self.main.body.block)

    def _open(self, lines: Lines, prototype: str, profiled: bool) -> None:
        for line in prototype.split("\n"):
            lines.add(line)
        lines.add("{")
        lines.depth = 1
        self._start_scope(profiled)
        self._checks(lines)
        self._bases(lines)
        self._views(lines)
        lines.add("")
        if self.flush_subnormals:
            self.prelude.plain.add("subnormals")
            lines.add("const uint64_t msc_before = msc_mode();")
            self._set_mode(lines, "msc_before | MSC_FLUSH")

    def _close(self, lines: Lines) -> str:
        if self.flush_subnormals:
            self._set_mode(lines, "msc_before")
        lines.add(f"return {self.signature.name.upper()}_OK;")
        lines.depth = 0
        lines.add("}")
        return lines.text()

    def _set_mode(self, lines: Lines, mode: str) -> None:
        """Of the caller's thread; those that it computes with take it over."""
        lines.add(f"msc_set_mode({mode});")

    def _start_scope(self, profiled: bool) -> None:
        tensors = [t.c_name for t in (*self.signature.inputs, *self.signature.outputs, *self.signature.sizes)]
        fixed = (
            {"workspace", "memory", "weights", "start", "seconds"} if profiled else {"workspace", "memory", "weights"}
        )
        self.scope = NameScope([{*tensors, *fixed, *(k.name for k in self.kernels.values())}])
        self.names = {}
        self.entries = {}

    def _checks(self, lines: Lines) -> None:
        macro = self.signature.name.upper()
        pointers = [t.c_name for t in (*self.signature.inputs, *self.signature.outputs) if t.elements]
        if self.plan.workspace_bytes:
            pointers.append("workspace")
        if pointers:
            lines.add(f"if ({' || '.join(f'!{p}' for p in pointers)})")
            lines.add(f"    return {macro}_ERROR_NULL;")
        if self.plan.workspace_bytes:
            lines.add(f"if ((uintptr_t)workspace % {self.signature.alignment} != 0)")
            lines.add(f"    return {macro}_ERROR_ALIGNMENT;")
        for size in self.signature.sizes:
            lines.add(f"if ({size.c_name} < {size.low} || {size.c_name} > {size.high})")
            lines.add(f"    return {macro}_ERROR_SIZE;")
        for tensor in self.signature.inputs:
            if tensor.indices is not None and tensor.elements:
                self._check_indices(lines, tensor, tensor.indices)

    def _check_indices(self, lines: Lines, tensor: TensorSpec, bounds: tuple[int, int]) -> None:
        """A loop over the elements that returns an error before anything is written."""
        low, high = bounds
        rank, place = len(tensor.shape), "0"
        names = [size.c_name for size in self.signature.sizes]
        for k, size in enumerate(tensor.shape):
            bound = tensor.bounds[k] if tensor.bounds else None
            end = str(size) if bound is None else bound.text(names).replace("//", "/")
            lines.add(f"{'    ' * k}for ({INDEX_TYPE} msc_i{k} = 0; msc_i{k} < {end}; ++msc_i{k})")
            stride = f"({end})" if tensor.compact else str(size)
            place = f"msc_i{k}" if place == "0" else f"({place}) * {stride} + msc_i{k}"
        element = f"(int64_t){tensor.c_name}[{place}]"
        lines.add(f"{'    ' * rank}if ({element} < {low} || {element} > {high})")
        lines.add(f"{'    ' * rank}    return {self.signature.name.upper()}_ERROR_INDEX;")

    def _bases(self, lines: Lines) -> None:
        name = self.signature.name
        if self.plan.weights_bytes:
            lines.add(f"const unsigned char *const weights = {name}_weights_address();")
            lines.add("if (!weights)")
            lines.add(f"    return {name.upper()}_ERROR_WEIGHTS;")
        if self._uses("weights") is False and self.plan.weights_bytes:
            lines.add("(void)weights;")
        if self._uses("workspace"):
            lines.add("unsigned char *const memory = workspace;")
        elif not self.plan.workspace_bytes:
            lines.add("(void)workspace;")
        for tensor in (*self.signature.inputs, *self.signature.outputs):
            if not tensor.elements:  # it may be NULL, so that nothing above reads the pointer
                lines.add(f"(void){tensor.c_name};")

    def _uses(self, role: str) -> bool:
        return any(place.role == role for place in self._used())

    def _used(self) -> Iterator[MemoryPlace]:
        """Whole buffers that calls take, of which they take entries, or that scalars are read from, in order."""
        for call in self.plan.calls:
            yield from (place.whole for place in call.places)
        for op in self.main.body.walk():
            if isinstance(op, memref.LoadOp | memref.StoreOp):
                yield self.plan.places[op.memref].whole

    def _views(self, lines: Lines) -> None:
        """Names for every part of the workspace and the weights that a call uses, in order of use."""
        known: dict[tuple[str, int, str], str] = {}
        for place in dict.fromkeys(self._used()):
            if place.role in ("input", "output"):
                continue
            key = (place.role, place.offset, self._hint(place))
            if key not in known:
                known[key] = self.scope.fresh(self._hint(place), "t")
                lines.add(self._pointer(known[key], place))
            self.names[place] = known[key]

    def _pointer(self, name: str, place: MemoryPlace) -> str:
        base = f"memory + {place.offset}" if place.role == "workspace" else self._weights_at(place.offset)
        return f"void *const {name} = {base}; {_type_comment(place)}"

    def _weights_at(self, offset: int) -> str:
        """Where a parameter lies; one without elements may be all there is, and then nothing does."""
        return f"(void *)(weights + {offset})" if self.plan.weights_bytes else "NULL"

    def _hint(self, place: MemoryPlace) -> str:
        if place.role == "weights":
            return self._symbols.get(place.offset) or self.plan.names.get(place, "") or "w"
        return self.plan.names.get(place, "") or "t"

    @cached_property
    def _symbols(self) -> dict[int, str]:
        """The first parameter at each offset of the weights."""
        return {slot.offset: slot.symbol for slot in reversed(self.plan.slots)}

    def _call(self, call: Call) -> str:
        if call.kernel is None:
            source, target = (self._argument(place) for place in call.places)
            return f"memmove({target}, {source}, {call.places[0].buffer.bytes});"
        kernel = self.kernels[call.kernel]
        sizes = [self.signature.sizes[k].c_name for k in call.sizes]
        arguments = [*(self._argument(place) for place in call.places), *sizes]
        return wrap_prototype(f"{kernel.name}(", arguments, ");")

    def _entry(self, place: MemoryPlace, index: str) -> tuple[str, str]:
        """The name of an entry and the declaration that gives it its address."""
        assert place.within is not None
        name = self.entries[place.entry] = self.scope.fresh(self.plan.names[place] or "entry")
        base = self._argument(place.within).removeprefix("(void *)")
        address = f"(unsigned char *){base} + {index} * {place.buffer.bytes}"
        return name, f"void *const {name} = {address}; {_type_comment(place)}"

    def _argument(self, place: MemoryPlace) -> str:
        if place.entry:
            return self.entries[place.entry]
        if place in self.names:
            return self.names[place]
        tensor = self._tensor(place)
        same = memory_name(place.buffer.base) == _API_TYPES[tensor.dtype] and len(place.buffer.shape) <= 1
        return tensor.c_name if same else f"(void *){tensor.c_name}"

    def _tensor(self, place: MemoryPlace) -> TensorSpec:
        return (self.signature.inputs if place.role == "input" else self.signature.outputs)[place.root]


def _type_comment(place: MemoryPlace) -> str:
    shape = "".join(f"[{size}]" for size in place.buffer.shape)
    return c_comment(f"{memory_name(place.buffer.base)}{shape}")


PROFILE_CLOCK = """static double msc_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
"""

PROFILE_LAP = """/* Adds the time since start to total; the next start. */
static double msc_lap(double start, double *total)
{
    const double now = msc_now();
    *total += now - start;
    return now;
}
"""
