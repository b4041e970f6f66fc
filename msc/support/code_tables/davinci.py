"""MSC10xx: Ascend machines, DaVinci kernels and their simulation."""

from __future__ import annotations

from msc.support.code_tables.entry import Code

CODES: tuple[Code, ...] = (
    Code(
        "MSC1001", "unknown Ascend machine", "Machines are the files msc/targets/ascend/*.toml: ascend910b1 and others."
    ),
    Code(
        "MSC1002",
        "machine file is wrong",
        "A machine file has the sections and keys of msc/targets/ascend/ascend910b1.toml, each key of its type; "
        "`base` names a machine that gives what the file leaves out.",
    ),
    Code(
        "MSC1011",
        "address out of bounds",
        "An instruction reads or writes beyond its memory, or beyond an argument. Compare its lengths, strides and "
        "repeats with the size of the buffer.",
    ),
    Code(
        "MSC1012",
        "address not aligned",
        "On-chip addresses are multiples of 32 bytes in UB and L1, of 512 in L0A and L0B, of 64 in L0C.",
    ),
    Code(
        "MSC1013",
        "read of what nothing has written",
        "An instruction reads bytes of an on-chip memory, or of an output, that hold nothing yet. A move is missing, "
        "too short, or not waited for.",
    ),
    Code(
        "MSC1014",
        "illegal parameter",
        "A parameter of an instruction is outside its range, or an event id does not exist.",
    ),
    Code(
        "MSC1015",
        "deadlock",
        "A queue waits for a flag that nothing sets any more; the notes name all queues that wait, and for what. "
        "A flag that goes backwards, from a consumer to the "
        "producer of the next iteration, has to be set once before the loop.",
    ),
    Code(
        "MSC1016",
        "unpaired or doubly set flag",
        "Each set_flag has exactly one wait_flag of the same pipes and event id, and a flag is set again only after "
        "it was waited for.",
    ),
    Code(
        "MSC1017",
        "race",
        "Two pipes touch the same bytes, one of them writes, and neither flags nor barriers say which comes first. "
        "The vector unit needs a pipe_barrier before it reads its own results. Between cores, flags of "
        "ffts_cross_core_sync order accesses to global memory.",
    ),
    Code(
        "MSC1021",
        "schedule does not fit the machine",
        "Tiles, buffers or a path that a schedule asks for do not exist on the machine: the message names the memory "
        "and its size. Make the tiles smaller or the buffers fewer, or leave the key out: then it is chosen.",
    ),
    Code(
        "MSC1022",
        "list of cases is wrong",
        "`msc sim --cases` reads TOML: [[cases]] with name, op, sizes, a schedule and, if there are any, published "
        "times; docs/ascend.md lists the keys.",
    ),
    Code(
        "MSC1023",
        "too few event ids",
        "Two pipes of a kernel exchange more flags than a core has event ids for a pair of pipes. Let fewer buffers "
        "change hands between the two, or put them under one flag by hand.",
    ),
    Code(
        "MSC1030",
        "run that takes too long",
        "A run on the simulator takes more instructions and iterations than the limit, 134,217,728 of all cores "
        "together; an instruction counts more the more bytes it touches. `msc sim --limit N` sets another one. "
        "A loop may have bounds that were not meant.",
    ),
    Code(
        "MSC1031",
        "no memory for a simulated run",
        "The simulator has no memory for the state of L2, for the cores, or for the accesses that a proof remembers: "
        "about as much as the arguments of the kernel take.",
    ),
    Code(
        "MSC1032",
        "kernel breaks a rule of its machine",
        "A kernel uses what its cores do not have: an instruction or a queue of the other kind of core, inputs that "
        "the cube does not multiply, a reserved event id; or two buffers share bytes without `overlapping`, a buffer "
        "lies outside its memory, or an index may become so large that 64 bits wrap.",
    ),
    Code("MSC1020", "file without a kernel", "A `.dv.mir` file holds one davinci.kernel or more."),
)
