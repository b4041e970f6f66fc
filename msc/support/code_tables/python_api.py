"""MSC08xx: the Python API. 0801 to 0839: tensors, operations, cells and what they are given; 0840 on: graph mode."""

from __future__ import annotations

from msc.support.code_tables import capture, training
from msc.support.code_tables.entry import Code

CODES: tuple[Code, ...] = (
    Code("MSC0801", "no such element type", "The message lists the element types; complex numbers are none of them."),
    Code(
        "MSC0802",
        "the elements of a captured tensor are not known",
        "While a graph is captured, tensors stand for values that exist when it runs. A Python `if`, `int()` or "
        "`asnumpy()` in library code cannot have them. PyNative mode runs every operation at once and has them.",
    ),
    Code(
        "MSC0803",
        "data that make no tensor",
        "A Tensor is made of a number, a nested list of numbers with rows of one length, or a NumPy array.",
    ),
    Code(
        "MSC0804",
        "not a tensor of one element",
        "`bool()`, `int()`, `float()` and `item()` take a tensor of one element, `len()` and iteration one of rank "
        "1 or more. `.all()`, `.any()` and `ops.where` say what is meant for many elements.",
    ),
    Code("MSC0805", "a Tensor has no such attribute", "The help proposes the nearest name, if one is near."),
    Code(
        "MSC0806",
        "a tensor without elements",
        "`Tensor(shape=(None, 4), dtype=...)` describes an argument for compiling. It has no elements to compute on.",
    ),
    Code(
        "MSC0807",
        "value that a Parameter cannot have",
        "A Parameter is made of data and keeps its element type and shape. Give `set_data` a tensor of that shape.",
    ),
    Code(
        "MSC0808",
        "initialiser that cannot be used",
        "The message gives the name or argument that is wrong. Initialisers are Zero, One, Constant, Normal, "
        "TruncatedNormal, Uniform, XavierUniform, HeNormal, HeUniform and others, by object or by name.",
    ),
    Code("MSC0811", "operand that is no tensor", "Operations take tensors, and Python numbers where NumPy does."),
    Code(
        "MSC0812",
        "element types that do not come together",
        "No element type holds the numbers of both operands. Convert one of them with `.astype()`.",
    ),
    Code(
        "MSC0815",
        "index that a tensor does not take",
        "Indices are integers, slices, None, ..., lists, and tensors of integers or booleans, inside the tensor.",
    ),
    Code("MSC0813", "wrong number of sizes", "A size is given once for all axes, or once for each."),
    Code("MSC0814", "no such setting", "`set_context` takes MindSpore's settings; the help proposes the nearest name."),
    Code("MSC0820", "a Cell without construct", "`construct(self, ...)` says what a Cell computes; define it."),
    Code("MSC0821", "a Cell has no such attribute", "The help proposes the nearest parameter, cell or attribute."),
    Code(
        "MSC0822",
        "parameter or cell that cannot be inserted",
        "Parameters and cells are inserted under names without a dot; a parameter is a Parameter, a cell a Cell.",
    ),
    Code(
        "MSC0823",
        "super().__init__() is missing",
        "A Cell keeps its parameters in tables that `Cell.__init__` makes. Call `super().__init__()` first.",
    ),
    Code(
        "MSC0824",
        "layer with an argument that it cannot have",
        "The message names the layer, the argument and what it may be.",
    ),
    Code(
        "MSC0826",
        "no such cell in the container",
        "The list or dictionary has no such index or key.",
    ),
    Code(
        "MSC0827",
        "primitive without an implementation",
        "A primitive of a user defines `construct` on tensors, or `vm_impl` on arrays, or has the name of an operator "
        "of msc. What it computes has the shape and the element type that it infers.",
    ),
    Code(
        "MSC0828", "operator with wrong arguments", "The help gives the names and defaults; inputs come with the call."
    ),
    Code(
        "MSC0829",
        "custom operator that cannot run",
        "`Custom` takes a Python function, or the name of a function in a shared library and what its results are.",
    ),
    Code(
        "MSC0830",
        "checkpoint that cannot be read",
        "The file is not there, or it is neither safetensors nor a checkpoint of MindSpore, or damaged.",
    ),
    Code(
        "MSC0831",
        "checkpoint that does not fit",
        "A parameter of the checkpoint has another shape or element type than that of the net, or what is to be saved "
        "is no tensor. The message gives both.",
    ),
    Code(
        "MSC0833",
        "call with wrong arguments",
        "A function, operator, layer or method got arguments that it does not take, or that do not fit "
        "together. The message names the argument, the help shows the signature; MSC_TRACEBACK=1 shows more.",
    ),
    Code(
        "MSC0834",
        "integer of more than 64 bits",
        "Graph mode computes Python's integers with 64 bits where a tensor decides them. A call that needs more runs "
        "in PyNative mode. Where a graph is split, that is too late: compute with floats, or with smaller numbers.",
    ),
    Code("MSC0832", "a module of the API has no such name", "`python -m msc.names` lists all names that exist here."),
    Code(
        "MSC0856",
        "gradient of what has none",
        "`grad` and its kin take a function of tensors and positions of arguments that it has; it gives tensors. "
        "With has_aux it gives a tuple, whose first part is differentiated; sens has the shapes of the results.",
    ),
    Code(
        "MSC0857",
        "batches that do not fit",
        "`vmap` calls a function of one example on batches: each argument has the axis that in_axes says, with as many"
        " examples in all of them.",
    ),
    Code(
        "MSC0858",
        "optimiser with an argument that it cannot have",
        "An optimiser takes Parameters of floats, or groups of them, learning rates as numbers, lists or schedules, "
        "and a gradient of the same shape for each parameter.",
    ),
    Code("MSC0825", "no such activation", "An activation is a name such as 'relu', a Cell or a function of a tensor."),
    *capture.CODES,
    *training.CODES,
)
