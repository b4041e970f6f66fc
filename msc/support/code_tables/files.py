"""MSC00xx: the front door, the command line and files."""

from __future__ import annotations

from msc.support.code_tables.entry import Code

CODES: tuple[Code, ...] = (
    Code(
        "MSC0001",
        "file cannot be read",
        "The file does not exist, is a directory, or may not be read. Check the spelling of the path and its "
        "permissions.",
    ),
    Code(
        "MSC0002",
        "file is too large",
        "Source files are limited to 16 MiB: weights belong in the safetensors file that `ms.weights` names, "
        "not in the text.",
    ),
    Code(
        "MSC0003",
        "file is not UTF-8 text",
        "msc reads UTF-8. The position given is that of the first byte which is not valid UTF-8.",
    ),
    Code(
        "MSC0004",
        "file cannot be written",
        "The directory does not exist, may not be written, or the disk is full. msc writes beside the target "
        "and renames, so that the old file, if any, is untouched.",
    ),
    Code(
        "MSC0005",
        "unknown diagnostic code",
        "`msc explain` knows the codes that msc prints, MSC0001 and on. `msc explain` without an argument lists them.",
    ),
    Code(
        "MSC0006",
        "model of unknown kind or stage",
        "The extension of a file says what it is: `.mir` a graph, `.opt.mir`, `.gk.mir` and `.loop.mir` the later "
        "stages; `--from STAGE` says it for a file of another name. Compilation goes on from the file's stage and "
        "never back.",
    ),
    Code(
        "MSC0007",
        "unknown form of output",
        "The extension of the output, or `--emit`, says what is made: graph, opt, gk, loop, c, obj, so, exe or bundle. "
        "Binary forms need a file to go to.",
    ),
    Code(
        "MSC0008",
        "option out of range",
        "The value of a command-line option, or of a keyword of `msc.compile`, is not one that the option takes.",
    ),
    Code(
        "MSC0009",
        "nothing to explain",
        "`msc explain MODEL --kernel NAME` knows the kernels of the model by label or function name. A model at the "
        "loop stage carries no decisions any more: explain the file that it was compiled from.",
    ),
    Code(
        "MSC0010",
        "output would replace its own input",
        "The file to write is one that is read to make it: the model, its weights, an input or a tuning file. It "
        "is known by its inode, so that links and other spellings of the path count. `--force` replaces it.",
    ),
    Code(
        "MSC0011",
        "output would replace a file that msc did not write",
        "msc replaces a file without asking if it wrote it for the same output and nobody changed it since: texts "
        "carry a checksum in their first line, libraries and programs the model's signature, folders a manifest. "
        "An empty file is replaced as well. For any other, name another output, or give `--force`.",
    ),
    Code(
        "MSC0012",
        "another package named msc",
        "The package `msc` of the Python index is another program, which installs into a folder of that name. msc's "
        "own package is called `msc-compiler`, and it is imported as `msc`. Uninstall the other one, then install "
        "msc-compiler again from its folder; `msc doctor` finds such packages.",
    ),
    Code(
        "MSC0013",
        "cache cannot be used",
        "The folder of the cache cannot be made, or others than its owner may write to it: what it holds cannot "
        "be trusted. msc compiles without a cache then. MSC_CACHE_DIR names another folder.",
    ),
    Code(
        "MSC0014",
        "option without effect",
        "An option was given that changes nothing for this kind of model: an artifact is compiled already, a later"
        " stage file is past the passes that the option is for, `--input-value` is for ONNX models. Leave it out.",
    ),
    Code(
        "MSC0015",
        "tensor of msc in a function of PyTorch",
        "A function or layer of PyTorch was given a Tensor of msc. Within a Cell use the layers of `msc.nn` and the "
        "functions of `msc.ops`; between the libraries, tensors are handed on as NumPy arrays.",
    ),
    Code(
        "MSC0016",
        "a package is missing",
        "What was asked for needs a package that is not installed, and that msc does not need otherwise. The help "
        "names it; docs/dependencies.md lists all of them.",
    ),
    Code(
        "MSC0020",
        "not enough memory",
        "The system gave no more memory. `msc inspect` shows what a model needs; `--max-memory` refuses larger ones.",
    ),
    Code(
        "MSC0021",
        "the system refused",
        "A file could not be made, read or written, or a process not started, for the reason that the system gives: "
        "often a full disk, a limit of `ulimit`, or a folder for temporary files (TMPDIR) that cannot be written.",
    ),
)
