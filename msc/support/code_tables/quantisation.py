"""MSC121x: quantising a model."""

from __future__ import annotations

from msc.support.code_tables.entry import Code

CODES = (
    Code(
        "MSC1210",
        "nothing to quantise",
        "Quantising pays for convolutions and matrix products of f32 with weights. The model has none, or is no single "
        "function.",
    ),
    Code(
        "MSC1211",
        "calibration data does not fit the model",
        "The data are arrays with samples along axis 0, one an input by its name, or samples one after the other.",
    ),
    Code(
        "MSC1212",
        "calibration meets values that are not finite",
        "A range cannot hold NaN or infinity. The same input fails in f32, too: look for it in the data.",
    ),
    Code(
        "MSC1213",
        "the quantised model loses too much",
        "The metric falls by more than --max-drop allows, with nearly all layers in f32. More calibration data, "
        "another --method, or quantisation-aware training may help.",
    ),
    Code(
        "MSC1214",
        "unusable option of a quantisation",
        "The option is unknown, or has a value that it cannot have; the message says which there are.",
    ),
)
