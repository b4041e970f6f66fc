"""MSC07xx: importers."""

from __future__ import annotations

from msc.support.code_tables.entry import Code

CODES: tuple[Code, ...] = (
    Code(
        "MSC0701",
        "model cannot be read",
        "The file of the model does not exist, may not be read, or is not a plain file.",
    ),
    Code(
        "MSC0702",
        "not a model",
        "The file is not what its name says (an ONNX protobuf, a TFLite FlatBuffer), or is truncated or damaged, or"
        " holds no graph.",
    ),
    Code(
        "MSC0703",
        "opset is not supported",
        "msc reads the opsets that the message names. `onnx.version_converter` rewrites older models.",
    ),
    Code(
        "MSC0704",
        "type is not supported",
        "The model uses an element type or a kind of value (a string, a sequence as input, a sparse tensor) that msc"
        " does not compute on.",
    ),
    Code(
        "MSC0705",
        "graph is not well formed",
        "A node uses a value that nothing computes, or that is computed only later: the graph has a cycle, or its nodes"
        " are not in order.",
    ),
    Code(
        "MSC0706",
        "external data is refused",
        "Weights in other files must be plain files inside the model's folder: absolute paths, `..`, symbolic and hard"
        " links are refused, so that a model from elsewhere cannot read other files.",
    ),
    Code(
        "MSC0707",
        "external data does not fit",
        "The offset and length that the model gives lie outside the file, or are not what the tensor's type takes.",
    ),
    Code("MSC0708", "absurd size", "A shape has negative sizes, too many dimensions, or more than 2^40 elements."),
    Code("MSC0709", "tensor data does not fit", "A tensor of the model holds more or less data than its type takes."),
    Code(
        "MSC0710",
        "operators are not supported",
        "The message lists every operator of the model that msc does not import, with how often it is used.",
    ),
    Code(
        "MSC0711",
        "node is not valid or not supported",
        "An input or attribute of the node is missing, of the wrong kind, or asks for what msc does not do.",
    ),
    Code(
        "MSC0712",
        "value must be known at import",
        "The value of an input decides a shape (axes, sizes, counts). Give it with `--input-value NAME=VALUES`; the"
        " function that `msc.compile` gives is compiled for each value at its first call.",
    ),
    Code(
        "MSC0713",
        "shape must be known at import",
        "A size that the node needs is left open by the model. Bind it with `--dim NAME=SIZE`, or with a range, "
        "`--dim NAME=1..64`, within which each call decides; or give inputs that have it: `msc run MODEL --input "
        "NAME=@file.npy`.",
    ),
    Code(
        "MSC0714",
        "model is too large when unrolled",
        "Functions are inlined, and loops unrolled whose bodies need to know values that differ between iterations (a"
        " slice whose bounds are computed); the limits keep a small file from becoming an endless compilation.",
    ),
    Code("MSC0715", "unknown name to bind", "`--dim` or `--input-value` names what the model does not have."),
    Code(
        "MSC0790",
        "node cannot be imported",
        "The importer failed at this node: its attributes or inputs are out of any sensible range, or it is a case that"
        " msc does not foresee. If the model is sound, please report it.",
    ),
    Code(
        "MSC0717",
        "package is missing",
        "Reading ONNX files needs the package `onnx`, which the extra `onnx` of msc installs; TFLite files need"
        " `tflite` and `flatbuffers`, of the extra `tflite`; `msc verify --against` needs the package of the"
        " program that it names.",
    ),
    Code(
        "MSC0721",
        "another program does not run the model",
        "`msc verify --against onnxruntime` runs the file with ONNX Runtime, `--against tflite_micro` with TensorFlow"
        " Lite for Microcontrollers; what it says stands in the message.",
    ),
    Code(
        "MSC0722",
        "length that data decide is not usable",
        "NonZero, Compress, Unique, NonMaxSuppression and loops give as many elements as data decide. The operator"
        " marked needs that number when the model is compiled: it joins, splits or cuts the axis, or takes all of it. A"
        " value of the input (`--input-value`) makes the number known.",
    ),
    Code(
        "MSC0730",
        "scales of a quantised model are not usable",
        "A tensor of integers lacks a scale where its operator needs one, has several where one is needed, or has one"
        " that no kernel computes with. The converter writes all scales when it is given a representative data set and"
        " 8-bit inputs and outputs.",
    ),
    Code(
        "MSC0718",
        "value of an input cannot be read",
        "`--input-value NAME=1,2` gives as many numbers as the input has elements, of its element type.",
    ),
    Code(
        "MSC0719",
        "value carried by a loop changes its type",
        "A loop that is compiled as a loop keeps one buffer for each value it carries, so that shape and element type"
        " are the same in all iterations. Where the number of iterations is known, the loop is unrolled instead.",
    ),
    Code(
        "MSC0716",
        "shape depends on data",
        "The value of a large input decides a shape, as of NonZero: compiling for each of its values is not sensible.",
    ),
    Code(
        "MSC0720",
        "no form in ONNX",
        "ONNX has no operator for the operation marked, or not in this mode or with a size that is open. What passes"
        " make, control flow and calls are not exported: export the model as it was read.",
    ),
)
