"""Codes of data sets and of the training loop."""

from __future__ import annotations

from msc.support.code_tables.entry import Code

CODES = (
    Code(
        "MSC0870",
        "data that cannot be read",
        "A file of a data set is missing, cut short, or of another format than the data set reads. The message gives "
        "the file and what is wrong with it.",
    ),
    Code(
        "MSC0871",
        "data set with an argument that it cannot have",
        "The message names the argument and says what it takes. Sizes are integers of 1 or more, a shard is below the "
        "number of shards, a sampler excludes shuffle and shards.",
    ),
    Code(
        "MSC0872",
        "rows that do not fit",
        "Every row of a data set has one value a column. A batch stacks values of one shape and element type: pad them "
        "with `padded_batch`, bring them to one shape with `map`, or combine them in `per_batch_map`.",
    ),
    Code(
        "MSC0873",
        "no such column",
        "Operations name columns that the data set has; the message lists them. Data sets that are zipped have no "
        "column of one name, those that are concatenated have the same columns.",
    ),
    Code(
        "MSC0874",
        "transform that does not take this",
        "A transform of images, text or data has an argument that it cannot have, or gets a value that it cannot "
        "transform: images are arrays [height, width, channels] or [height, width], or images of Pillow.",
    ),
    Code(
        "MSC0875",
        "a package is needed that is not installed",
        "Image files are decoded by Pillow, which the extra `data` of msc installs: `pip install pillow`. Parquet and "
        "Arrow files need `pyarrow`, and sounds that are no WAV files `soundfile`.",
    ),
    Code(
        "MSC0876",
        "training that cannot begin",
        "`Model` takes a network, a loss, an optimiser and metrics; `train` and `eval` a data set of msc.dataset whose "
        "columns are what the network with its loss takes. The message names the argument.",
    ),
    Code(
        "MSC0877",
        "metric that cannot be computed",
        "A metric has an argument that it cannot have, or gets predictions and labels that do not fit together; the "
        "message gives both shapes.",
    ),
    Code(
        "MSC0878",
        "callback with an argument that it cannot have",
        "The message names the argument and says what it takes. What a callback monitors is 'loss' or a metric of the "
        "evaluation, which `Model.fit` makes.",
    ),
    Code(
        "MSC0879",
        "checkpoint from which training cannot go on",
        "Training goes on from a checkpoint that ModelCheckpoint wrote of the same network, optimiser and data set: it "
        "holds all of their states. `load_checkpoint` and `load_param_into_net` load parameters from any other one.",
    ),
    Code(
        "MSC0880",
        "loss that is no number",
        "The loss became infinite or NaN, and training cannot go on. A smaller learning rate, or gradients clipped "
        "with `ops.clip_by_global_norm`, help most often; so does a look at the data of that step.",
    ),
    Code(
        "MSC0881",
        "mixed precision that there is not",
        "`auto_mixed_precision` takes a Cell, a level of O0, O1, O2, O3 and auto, and float16 or bfloat16; "
        "`custom_mixed_precision` one list of classes of cells: those that compute in the narrow type, or those that "
        "do not.",
    ),
    Code(
        "MSC0882",
        "scale of a loss that cannot be",
        "A scale and its factor are numbers above 0, a window is a number of steps. A fixed scale that never leaves "
        "out an update is divided out by the optimiser, whose `loss_scale` is the same.",
    ),
    Code(
        "MSC0883",
        "iterator over a data set in another process",
        "An iterator reads ahead in a thread, which a child by `os.fork` does not have. Make the iterator in the "
        "process that reads it; the data set itself can be used in both.",
    ),
    Code(
        "MSC0884",
        "value that the type of its column does not have",
        "`column_types` or a schema says that a column holds integers or booleans, and the data have another value: -1 "
        "in UInt32, NaN or 0.5 in Int32. `transforms.TypeCast` converts as C does, if that is what is meant.",
    ),
    Code(
        "MSC0886",
        "argument without effect",
        "An argument or a setting of MindSpore's that concerns speed, memory, devices or diagnostics, and that msc "
        "does not need. The note says why. It is told once for each call and argument; results are as without it.",
    ),
    Code(
        "MSC0887",
        "argument that is not there",
        "An argument or a setting of MindSpore's that could change a result, and that msc does not have; or a value "
        "that MindSpore does not have either. The note says what to do instead.",
    ),
    Code(
        "MSC0888",
        "encrypted checkpoint",
        "A checkpoint is encrypted, and the key or the mode is missing or wrong, or the file was changed; or a "
        "checkpoint cannot be encrypted so. Keys are 16, 24 or 32 bytes, modes 'AES-GCM' and 'AES-CBC'.",
    ),
    Code(
        "MSC0889",
        "checkpoint without a checksum",
        "`load_checkpoint(crc_check=True)` is asked for, and the file has no checksum: "
        "`save_checkpoint(crc_check=True)` writes one. A file that has a checksum is always checked.",
    ),
    Code(
        "MSC0890",
        "checkpoint that was not written",
        "A checkpoint that is saved in the background (`async_save`) could not be written. The next save, or the end "
        "of the program, tells of it. The file that was there before is still there.",
    ),
    Code(
        "MSC0891",
        "optimiser of another network",
        "An optimiser updates parameters that the loss of a training step does not depend on, as those of another "
        "object of the same class. Make the optimiser of `net.trainable_params()` of the network that is trained.",
    ),
    Code(
        "MSC0892",
        "layers that are not registered",
        "A list, tuple or dictionary in an attribute of a cell holds cells, whose parameters are not those of the "
        "cell. `nn.CellList` and `nn.CellDict` register them.",
    ),
    Code(
        "MSC0893",
        "index that the C does not look at",
        "`--check-indices` has the generated C look at inputs that the model gathers by. An index that the model "
        "computes is not looked at; outside its dimension, the nearest element is read.",
    ),
    Code(
        "MSC0894",
        "variance of one value",
        "A batch norm that is trained is given one value for each channel. Its variance has divisor N - 1, which is 0: "
        "`moving_variance` becomes NaN, as in MindSpore, and so does every evaluation.",
    ),
    Code(
        "MSC0895",
        "more than one process",
        "A program asks for ranks, groups, devices or files of several processes. msc runs one: rank 0 of 1, with one "
        "device, where all modes of `ParallelMode` are the same. The help says what to leave out.",
    ),
    Code(
        "MSC0896",
        "device that is not there",
        "A device, a stream, an event or a setting of `runtime`, `hal` and `device_context` that there is not. The "
        "only device is the CPU of this machine, number 0; `msc sim` runs kernels on a simulated Ascend.",
    ),
    Code(
        "MSC0897",
        "argument that a check refused",
        "A program checks its own arguments with MindSpore's internal `_checkparam`, and one is not what the check "
        "says.",
    ),
    Code(
        "MSC0898",
        "work of MindSpore's that msc does not do",
        "A name of MindSpore's exists so that programs which import it run, but its work is not done here: a kernel of "
        "a device, complex numbers, second-order training, MindIR. The advice says what does such work.",
    ),
)
