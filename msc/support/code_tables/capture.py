"""Codes of graph mode: what cannot become one graph, and mistakes in how `jit` is used."""

from __future__ import annotations

from msc.support.code_tables.entry import Code

CODES = (
    Code(
        "MSC0840",
        "a value is needed that only the graph computes",
        "Code asks for the elements of a tensor (asnumpy(), a NumPy function, an index) where the graph cannot be "
        "split: with fullgraph=True, or inside an if or a loop that a tensor decides on. Compute it with tensor "
        "operations, or leave out fullgraph: then the graph is run up to there.",
    ),
    Code(
        "MSC0841",
        "a variable has a value on one path only",
        "A tensor decides between two paths, and a variable that is read later gets a value on only one of them. Give "
        "it a value before, or on both paths. Without fullgraph the graph is split before the decision.",
    ),
    Code(
        "MSC0842",
        "two paths give values of different types",
        "A tensor decides between two paths, and a graph has one type for what comes out: tensors of one shape and "
        "element type, or Python numbers of one type. Without fullgraph the graph is split before the decision.",
    ),
    Code(
        "MSC0843",
        "what a loop carries does not keep its type",
        "A tensor decides how often a loop runs; a value that changes from one iteration to the next must keep its "
        "shape, element type and structure. Without fullgraph every iteration becomes a graph of its own.",
    ),
    Code(
        "MSC0844",
        "a path that a tensor decides on does what a graph cannot do",
        "A graph cannot raise an exception or print where a tensor decides whether that happens. Without fullgraph the "
        "graph is split before the decision, and the exception is raised as in PyNative mode.",
    ),
    Code(
        "MSC0845",
        "a path that a tensor decides on changes what cannot be undone",
        "Both paths are read when a graph is written; an iterator that gives an item on one of them cannot take it "
        "back. "
        "Without fullgraph the graph is split before the decision.",
    ),
    Code(
        "MSC0846",
        "a function calls itself where a tensor decides whether it does",
        "A graph has no stack. A function that returns its own call (tail position) becomes a loop; any other "
        "recursion on values of tensors is written as a loop by hand. Without fullgraph the graph is split there.",
    ),
    Code(
        "MSC0847",
        "source that cannot be read",
        "Graph mode reads the source of functions, and that of this one does not fit its code any more, as after a "
        "file was edited while the program runs. Start the program again.",
    ),
    Code(
        "MSC0848",
        "a function gives another result in every call",
        "Random numbers, the time and files differ between calls, so they are no constants of a graph. With fullgraph "
        "pass them as arguments; without, the function is read anew in every call.",
    ),
    Code(
        "MSC0849",
        "nothing to explain",
        "jit.explain tells what became of the calls of a function that jit returned, or of a Cell in graph mode, and "
        "this one has not been called that way.",
    ),
    Code(
        "MSC0850",
        "a model cannot do that",
        "A compiled model takes tensors and gives results; beside that it may assign Parameters, which become states."
        " Other objects, attributes and the caller's own tensors stay as they are: return what should change.",
    ),
    Code(
        "MSC0851",
        "no Cell in this file",
        "MODEL is `module.py:Net`, where Net is a Cell, a class of Cells or a function of the file, which is run.",
    ),
    Code(
        "MSC0852",
        "the Cell cannot be made",
        "The constructor needs arguments, or raised an error: give them as `module.py:Net(10, width=2)`.",
    ),
    Code(
        "MSC0853",
        "types of the inputs are needed",
        "A Cell has no types of its own: give one for each argument of construct, as --input x=1x1x32x32xf32.",
    ),
    Code(
        "MSC0854",
        "the code raises an error",
        "Capturing a Cell or a function reads and runs its code; this is the error that it raised, at its line.",
    ),
)
