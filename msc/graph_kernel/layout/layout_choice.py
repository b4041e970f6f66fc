"""Whether kernels compute faster on images channels first than last; nothing is measured.

Of both layouts the cost model says how long the kernels take that read and write the images, with the packing and the
schedules that they would get on one thread, and the transpositions that the layout needs: layouts change the order
of sums, and the number of threads must change no bit. Kernels are compared where the other layout may fill vectors
better, or saves a transposition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Block, Operation, SSAValue

from msc.analysis.constancy import is_constant
from msc.analysis.kernel_model import kernel_model
from msc.analysis.kernels import kernels_in
from msc.cost.access import pieces
from msc.dialects.element_types import BYTES, dtype_name
from msc.dialects.gk import KernelOp
from msc.dialects.ms.axis_transforms import TransformAxisOp
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.pooling import BasicPoolingOp
from msc.dialects.ms.views import ReshapeOp
from msc.graph_kernel.forms import GAIN, given_for, module_of
from msc.graph_kernel.kernel_results import add_reason
from msc.graph_kernel.layout.block_layouts import (
    BlockLayouts,
    channels_last,
    lies_either_way,
    lying_last,
    splits_for_kernels,
)
from msc.graph_kernel.layout.image_forms import Form, computes_on_images, images_of, lies_in_words, pads_only
from msc.graph_kernel.layout.pack_operands import PackOperands
from msc.graph_kernel.layout.read_transposed import ReadTransposed
from msc.ir.typed import static_shape, tensor_type
from msc.schedule.kernel_cycles import KernelCycles

BEHIND = ReadTransposed(), PackOperands(compare=False)
"""What decides how kernels read their operands once images have their layouts."""


@dataclass(frozen=True)
class ImageGroup:
    """Kernels of a block that hand images to each other, and the forms that all of them might get."""

    kernels: Sequence[KernelOp]
    forms: Sequence[Form]


@dataclass(frozen=True)
class LayoutChoice:
    """The choice of forms for kernels of a block, in a network whose constants have so many bytes."""

    context: Context
    cycles: KernelCycles
    between: int
    block: Block
    guess: Mapping[KernelOp, Form]

    def forms(self) -> dict[KernelOp, Form]:
        """The forms with the fewest cycles: the first guess, but for groups of kernels that are faster otherwise."""
        groups = self._groups()
        distinct = {self._key(group): group for group in reversed(groups)}
        lines = self.cycles.loops.choices(self._best, list(distinct.values()))
        found, chosen = dict(zip(distinct, lines, strict=True)), dict(self.guess)
        for group in groups:
            name, figures = found[self._key(group)]
            for kernel in group.kernels:
                chosen[kernel] = Form[name] if name else self.guess[kernel]
                add_reason(kernel, f"{chosen[kernel].value}: {figures}")
        return chosen

    def _groups(self) -> list[ImageGroup]:
        """The kernels in question, those together that one hands images to the other, with paddings in front."""
        asked = {kernel: forms for kernel in self.guess if (forms := self._alternatives(kernel))}
        group_of, groups = dict[KernelOp, list[KernelOp]](), list[list[KernelOp]]()
        for kernel in self.guess:
            if kernel not in asked and not (pads_only(kernel) and any(r in asked for r in self._readers(kernel))):
                continue
            before = [group_of[o] for v in kernel.inputs if isinstance(o := v.owner, KernelOp) and o in group_of]
            joined = [*dict.fromkeys(k for group in before for k in group), kernel]
            groups = [*(group for group in groups if not any(group is each for each in before)), joined]
            group_of |= dict.fromkeys(joined, joined)
        made = [ImageGroup(g, tuple(dict.fromkeys(f for k in g for f in asked.get(k, ())))) for g in groups]
        return [group for group in made if self._is_whole(group)]

    def _is_whole(self, group: ImageGroup) -> bool:
        """Whether no view that goes into kernels stands around a group: what these then read is not compared."""
        around = [
            *(v.owner for k in group.kernels for v in k.inputs),
            *(use.operation for k in group.kernels for r in k.results for use in r.uses),
        ]
        return not any(isinstance(op, ReshapeOp) and splits_for_kernels(op) for op in around)

    def _alternatives(self, kernel: KernelOp) -> tuple[Form, ...]:
        """Forms that may be faster than the first guess of a kernel on images."""
        compared = _has_windows(kernel) and not lies_in_words(kernel)
        images = images_of(kernel) if compared else []
        if not images or lies_either_way(shape := static_shape(kernel.results[images[0]])):
            return ()
        reads = any(value in self._last for value in kernel.inputs)
        last, first = self._filled(kernel, shape[1]), self._filled(kernel, _along_image(kernel, shape))
        across = (Form.FIRST,) if reads else ()
        match self.guess[kernel]:
            case Form.LAST:
                return (Form.BACK, *across) if last < GAIN * first or self._is_given_back(kernel) else ()
            case Form.FIRST:
                return (Form.LAST,) if reads or first < GAIN * last else ()
            case Form.BACK:
                return (Form.LAST, *across) if reads or first < GAIN * last else ()
            case Form.FOLLOWS:
                return across or (Form.LAST,)

    def _filled(self, kernel: KernelOp, extent: int) -> float:
        """The part of the lanes that so many elements fill, of the vectors that they take; of units, if narrower."""
        machine = self.cycles.target.machine
        size = BYTES[dtype_name(tensor_type(kernel.results[0]).element_type) or ""]
        lanes = max(1, int(machine.part * machine.lanes(size)))
        return extent / (lanes * pieces(extent, lanes))

    def _is_given_back(self, kernel: KernelOp) -> bool:
        """Whether something other than kernels reads the image, which is then brought back."""
        return any(_is_outside(use.operation, self.block) for result in kernel.results for use in result.uses)

    @cached_property
    def _last(self) -> set[SSAValue]:
        return lying_last(self.block, self.guess)

    def _readers(self, kernel: KernelOp) -> list[KernelOp]:
        uses = (use.operation for result in kernel.results for use in result.uses)
        return [op for op in uses if isinstance(op, KernelOp) and op.parent is self.block]

    def _around(self, group: ImageGroup) -> list[KernelOp]:
        """The kernels of a group, and those that read what they give, in their order."""
        found = {*group.kernels, *(reader for kernel in group.kernels for reader in self._readers(kernel))}
        return [kernel for kernel in self.guess if kernel in found]

    def _key(self, group: ImageGroup) -> object:
        """What a choice depends on."""
        return group.forms, tuple(
            (
                kernel_model(kernel).structure,
                kernel in group.kernels,
                self.guess[kernel],
                tuple((v in self._last, is_constant(v)) for v in kernel.inputs),
                self._is_given_back(kernel),
            )
            for kernel in self._around(group)
        )

    def _best(self, group: ImageGroup) -> list[str]:
        """The name of the form that is faster than the first guess, or none, and the figures."""
        cycles = {
            form: self._cycles(group, {**self.guess, **dict.fromkeys(group.kernels, form)}) for form in group.forms
        }
        guessed, fastest = self._cycles(group, self.guess), min(cycles, key=lambda form: cycles[form])
        if cycles[fastest] < GAIN * guessed:
            return [fastest.name, f"{cycles[fastest]:.0f} cycles predicted with its readers, {guessed:.0f} as guessed"]
        others = (f"{cycles[form]:.0f} if it {form.value}" for form in cycles)
        return ["", f"{guessed:.0f} cycles predicted with its readers, {', '.join(others)}"]

    def _cycles(self, group: ImageGroup, forms: Mapping[KernelOp, Form]) -> float:
        """Of the kernels of a group and its readers, and of the transpositions between them."""
        module = self._module(group, forms)
        for after in BEHIND:
            after.apply(self.context, module)
        return self.cycles.of(kernels_in(module), self.between)

    def _module(self, group: ImageGroup, forms: Mapping[KernelOp, Form]) -> ModuleOp:
        """A module for one thread that runs the kernels around a group, with layouts; what they read lies as guessed.

        It gives what others than kernels read of the group.
        """
        around, block = self._around(group), Block()
        made = {result for kernel in around for result in kernel.results}
        known, given = given_for(block, (v for kernel in around for v in kernel.inputs if v not in made))
        stored: dict[SSAValue, SSAValue] = {
            known[value]: block.insert_arg(_stored_last(value), len(block.args))
            for value in list(known)
            if value in self._last
        }
        copies = dict[KernelOp, KernelOp]()
        for kernel in around:
            copies[kernel] = kernel.clone(known)
            known |= zip(kernel.results, copies[kernel].results, strict=True)
        wanted = [
            known[result]
            for kernel in group.kernels
            for result in kernel.results
            if any(_is_outside(use.operation, self.block) for use in result.uses)
        ]
        module = module_of(block, [*given, *copies.values()], group.kernels[0], wanted)
        BlockLayouts(block, {copy: forms[kernel] for kernel, copy in copies.items()}, stored).assign()
        return module


def _has_windows(kernel: KernelOp) -> bool:
    """Whether a kernel convolves or pools.

    Not so Winograd's transforms: products give them channels last. The model predicts too little for vectors of
    channels that they would store lane by lane.
    """
    return computes_on_images(kernel) and not any(isinstance(op, TransformAxisOp) for op in kernel.body.block.ops)


def _is_outside(op: Operation, block: Block) -> bool:
    """Whether an operation is no kernel of a block."""
    return not isinstance(op, KernelOp) or op.parent is not block


def _stored_last(value: SSAValue) -> TensorType:
    type_, shape = tensor_type(value), static_shape(value)
    return TensorType(type_.element_type, [shape[k] for k in channels_last(len(shape))])


def _along_image(kernel: KernelOp, shape: Sequence[int]) -> int:
    """The elements along which vectors of an image channels first run: a row, or all of it without windows."""
    windows = (op for op in kernel.body.block.ops if isinstance(op, ConvolutionOp | BasicPoolingOp))
    return shape[-1] if any({*op.kernel(), *op.ints("stride")} != {1} for op in windows) else prod(shape[2:])
