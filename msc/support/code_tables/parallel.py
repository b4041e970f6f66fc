"""Codes of programs for many devices."""

from __future__ import annotations

from msc.support.code_tables.entry import Code

CODES = (
    Code(
        "MSC1100",
        "device mesh that is none",
        "A mesh is written as `dp=2,tp=4`: axes with different names, each with its number of ranks. Ranks count "
        "the last axis fastest: on this mesh rank 5 is at dp 1 and tp 1.",
    ),
    Code(
        "MSC1101",
        "layout that does not lie on the mesh",
        "A layout such as `[dp, _, sp.tp] sum(cp)` names for each dimension of a tensor the axes of the mesh that cut "
        "it, the major one first, or `_` for none, and the axes over which parts are still to be reduced. An axis "
        "stands once, and each dimension divides by the product of the sizes of its axes.",
    ),
    Code(
        "MSC1102",
        "no way from one layout to another",
        "A tensor goes from layout to layout on one mesh by gathering, cutting and exchanging its parts. Both layouts "
        "have the tensor's number of dimensions; values that are whole are not made partial; and each step between "
        "them divides the dimensions that it cuts.",
    ),
    Code(
        "MSC1103",
        "ranks on a target that has none",
        "Collectives of several ranks are calls of MPI in C for the CPU. Other targets take groups of "
        "one rank, which keep what they have.",
    ),
    Code(
        "MSC1104",
        "ranks that do not meet",
        "All ranks of a group run the same collectives in the same order, with tensors of one shape and element type; "
        "otherwise each waits for the others for ever. In the interpreter the message names what each rank met. A "
        "program with collectives runs on all the ranks that they name: `mpirun -n 4 ./model`.",
    ),
    Code(
        "MSC1105",
        "no MPI",
        "Programs of several ranks meet through MPI, a library of the system. OpenMPI and MPICH do: Debian's packages "
        "are openmpi-bin and libopenmpi-dev; MPICC names another compiler of MPI's. Programs in Python need mpi4py "
        "too, which `pip install 'msc-compiler[parallel]'` brings. One device needs none of them.",
    ),
    Code(
        "MSC1106",
        "mark that an operation does not admit",
        "`ms.shard` says for each operand of an operation how it lies on the mesh. Dimensions of one loop are "
        "cut by the same axes: in a product [m, k] times [k, n] both k. Windows, sorted axes and axes that data index "
        "are not cut.",
    ),
    Code(
        "MSC1107",
        "operation that is not partitioned",
        "A rank computes its part of an operation by the same operation on parts of its operands. This is none such: "
        "mark it so that its operands are whole. `partition` needs the layouts that `propagate-layouts` gives.",
    ),
    Code(
        "MSC1108",
        "how msrun is called",
        "`msrun --worker_num=4 train.py` starts a program on four ranks of this machine, by mpirun; with "
        "`--hostfile=FILE` on those that the file names, and `--timeout=SECONDS` ends it. Options of MindSpore's msrun "
        "that mpirun decides itself, such as `--master_port`, are read and not used.",
    ),
    Code(
        "MSC1109",
        "strategy that does not cut an operator",
        "`ops.MatMul().shard(((2, 1), (1, 4)))` says into how many parts each dimension of each operand is cut. "
        "Dimensions of one loop, as both k of a product [m, k] times [k, n], have one number; the numbers of an "
        "operator multiply to at most the ranks, and are products of their factors.",
    ),
    Code(
        "MSC1110",
        "stage of a pipeline that there is not",
        "`set_auto_parallel_context(pipeline_stages=2)` makes two stages of all ranks, 0 and 1; a cell's "
        "`pipeline_stage` says on which its operations run, and cells that say none are on the stage of what they are "
        "given.",
    ),
    Code(
        "MSC1111",
        "ranks of different versions",
        "Each rank compiles its part of one graph, and the parts fit together if all come of the same msc, Python and "
        "NumPy. `init()` compares them, and the message names what differs.",
    ),
    Code(
        "MSC1120",
        "not the file of a cluster",
        "A cluster is a text file with the tables `device`, `flops`, `efficiency`, one table `link.NAME` for each "
        "level of links, nearest first, and perhaps `host`; docs/parallel.md lists their figures. A key that is none "
        "of them, a figure that is missing, of another type or out of range is refused.",
    ),
    Code(
        "MSC1121",
        "cluster that there is not",
        "A cluster is one of the ready ones, which the message lists, or a file whose name ends with `.toml`. A "
        "parameter can be placed on the host only if the file has the table `host`.",
    ),
    Code(
        "MSC1122",
        "plan that needs more memory than a device has",
        "What a rank holds at its peak is more than the memory of a device without what the driver keeps; the message "
        "has the breakdown. More devices, a higher optimizer level (1 cuts the state, 2 gradients too, 3 weights as "
        "well), recomputation, a smaller micro-batch or large tables in the host's memory need less.",
    ),
    Code(
        "MSC1123",
        "no mesh that divides the work",
        "Data-parallel ranks divide the global batch into replicas, and micro-batches divide those; tensor-parallel "
        "ranks divide heads and features; stages have at least one layer each. No mesh of that many devices, or not "
        "the given one, does.",
    ),
    Code(
        "MSC1125",
        "strategies that do not fit the model",
        "A file of strategies has a line for each operator: its name and into how many parts each dimension of each "
        "operand is cut, as in `matmul0 [[2, 1], [1, 4]]`. Each name is one of the model's, each number of parts "
        "divides its dimension, and all parts together are at most the devices. `--strategy FILE` writes such a file.",
    ),
    Code(
        "MSC1126",
        "no MPI to measure with",
        "`mpirun -n 4 msc parallel measure -o cluster.toml` times the ranks of an MPI program. Python needs mpi4py for "
        "that (`pip install 'msc-compiler[parallel]'`), and mpi4py a library of MPI: on Debian `openmpi-bin`.",
    ),
    Code(
        "MSC1124",
        "not a file of planning cases",
        "`msc parallel plan --cases FILE.toml` reads `[[cases]]` with a model, a cluster and a batch; docs/parallel.md "
        "lists the keys.",
    ),
)
