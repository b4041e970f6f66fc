"""MSC05xx: targets and the toolchain."""

from __future__ import annotations

from msc.support.code_tables.entry import Code

CODES: tuple[Code, ...] = (
    Code(
        "MSC0501",
        "unknown CPU target",
        "`--march` names a CPU that msc does not know. `native` is this machine, `generic` runs on every machine of "
        "its architecture. A name that ends with .toml is the path of a machine's file (docs/targets.md).",
    ),
    Code(
        "MSC0502",
        "no C compiler",
        "Building an artifact needs gcc or clang. msc looks at $CC, then for cc, gcc and clang on the PATH. "
        "`msc doctor` shows what it finds; `--emit c` works without one.",
    ),
    Code(
        "MSC0503",
        "the C compiler failed",
        "The C compiler rejected generated C, or could not run. Rejected C is a bug in msc: the files are kept where "
        "the message says, to be sent with a report.",
    ),
    Code(
        "MSC0504",
        "not an artifact of msc",
        "The file is not a shared library built by msc for this architecture, it was built by an incompatible version, "
        "or it is not as msc wrote it: cut short, damaged, stripped. An artifact ends with its signature and a "
        "checksum, which are compared before any of it is mapped. Compile the model again.",
    ),
    Code(
        "MSC0505",
        "weights of the wrong size",
        "The bytes given for a model's weights do not fill the layout that its C expects.",
    ),
    Code(
        "MSC0506",
        "target not available",
        "`--target` names a back end: msc's own, or one that an installed package brings. A stage file goes on with "
        "the back end that made it. A back end of your own may also name a pass, a property or a dialect that cannot "
        "be loaded; docs/adding-a-back-end.md says what it consists of.",
    ),
    Code(
        "MSC0507",
        "model needs too much memory",
        "Weights, workspace, inputs and outputs together, or one tensor alone, exceed the limit of 4 GiB or the one "
        "that `--max-memory` sets. Check the dimensions first: one is likely mistyped.",
    ),
    Code(
        "MSC0508",
        "machine cannot be measured",
        "Shares of the machine's peak and bandwidth need two small C programs to be built and run once; one of them "
        "failed, as the notes say. `msc doctor` checks the C compiler.",
    ),
    Code(
        "MSC0519",
        "the C compiler does not end",
        "One run of the C compiler took longer than 300 seconds, or than the environment variable MSC_CC_TIMEOUT "
        "says, and was ended. The files are kept where the message says.",
    ),
    Code(
        "MSC0509",
        "C compiler for another machine",
        "The C compiler that was found does not know the CPU of `--march`. `$CC` names another one, say "
        "`CC=aarch64-linux-gnu-gcc`; C and bundles need none here, and are built by any other machine's compiler.",
    ),
    Code(
        "MSC0510",
        "the CPU lacks a feature that the artifact needs",
        "An artifact records the features of the CPU that its code may use, and is refused where one is missing: it "
        "would end by an illegal instruction. `--march native` is the machine that compiles; `--march generic`, or a "
        "name such as `x86-64-v3`, makes artifacts that run on others, too.",
    ),
    Code(
        "MSC0520",
        "kernel without its schedule",
        "A warning: the schedule that msc chose for a kernel is not legal, so the kernel runs without vectors, tiles "
        "and threads. Its results are right; it is slow, often by a factor of ten. The artifact keeps the warning, and "
        "`msc inspect` shows it. `msc explain MODEL --kernel NAME` shows the schedule.",
    ),
    Code(
        "MSC0511",
        "not the file of a machine",
        "`--march FILE.toml` reads a machine from a file of tables, which docs/targets.md lists. A key that is no "
        "figure of a machine, a figure that is missing, of another type or out of range, and figures that do not go "
        'together are refused. `base = "generic"`, or another name, gives what a file does not.',
    ),
    Code(
        "MSC0581",
        "the device is simulated",
        'A warning, said once: `set_context(device_target="Ascend")` has graphs run on the simulator of an Ascend '
        "910B1, which computes the same and takes long. Operations of PyNative mode run on the CPU. A graph that the "
        'simulator cannot run is refused. `device_target="CPU"` compiles for this machine.',
    ),
    Code(
        "MSC0530",
        "more memory than the machine has",
        "A machine file may say how many bytes of RAM and flash the machine has (`ram`, `flash`, docs/targets.md), and "
        "`--ram-limit`, `--rom-limit` and `--stack-limit` how many a model may take. RAM holds the workspace and the "
        "stack, flash the weights and, where the machine's C compiler is installed, the code; tensors of the caller "
        "are not counted. `--max-memory` limits weights, workspace, inputs and outputs together on any machine, and "
        "lets msc recompute values to need less; a smaller or quantised model needs less flash.",
    ),
    Code(
        "MSC0531",
        "no bound of the stack",
        "The header of a model for a microcontroller states how much stack a call takes at most: the sum of the frames "
        "on the longest way through the calls, as the C compiler tells them. A function that calls itself, or whose "
        "frame depends on values, has no such bound. Generated C has none of either, so this is a bug in msc.",
    ),
    Code(
        "MSC0532",
        "no such layout of a bundle",
        "`--layout zephyr|arduino|esp-idf|lite` writes the bundle of a microcontroller as a Zephyr module, an Arduino "
        "library, an ESP-IDF component, or under the file names of MindSpore Lite's code generator. Bundles for other "
        "machines have no layouts.",
    ),
    Code(
        "MSC0533",
        "unusable configuration of a code generator",
        "`msc compile --config FILE.cfg` reads the section `[micro_param]` of a configuration of MindSpore Lite's "
        "converter: `target` (x86, ARM64, ARM32, Cortex-M), `support_parallel`, `project_name`, `codegen_mode` "
        "(Inference). Options of the command line come first.",
    ),
    Code(
        "MSC0534",
        "no threads on the machine",
        "Threads share a kernel where an operating system gives them. A microcontroller's model runs in the thread "
        "that calls it, so `--threads` (`threads=` in Python) has nothing to say there.",
    ),
    Code(
        "MSC0580",
        "format cannot be loaded",
        "An installed package brings a format of model files (entry point group `msc.formats`) that cannot be "
        "imported, or is no subclass of `Format` with what a format defines. docs/formats.md lists that. `msc doctor` "
        "lists the formats that can be used.",
    ),
)
