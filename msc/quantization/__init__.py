"""Quantisation after training: a model in reals to one of 8-bit integers, by what it computes on data.

    import msc.quantization as quantization
    made = quantization.quantize("model.onnx", images)      # images: an array, dict or iterable of inputs
    print(made.report())
    made.save("model.int8.onnx")

`ranges` has the arithmetic, `places` what is quantised, `integers` writes it, `calibration` looks at values and errors,
`improvements` changes the model in reals first, `blocks` packs weights in few bits, `quantizing` is the whole.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msc.quantization.quantizing import QuantizedModel

COMPILER = ("msc.driver.quantising", "quantize")
"""Where models are read and compiled: the driver stands above, and is found by name."""

__all__ = ["quantize"]


def quantize(model: Any, data: object, *examples: Any, **wishes: Any) -> QuantizedModel:
    """Quantise a model file, or a Cell for arguments like `examples`, with calibration data.

    `data` is an array or a dict of arrays with samples along axis 0, or an iterable of samples, as a data set gives
    them. Options, by keyword:

    * `method`: how the range of an activation is found: "min-max", "moving-average", "percentile", "entropy", "mse";
    * `activations`: "uint8" or "int8"; `bits` and `weight_bits` from 2 to 8; `symmetric` for activations with the zero
      point in the middle; `per_channel=False` for one scale a weight;
    * `operators`: "all" keeps additions, averages and concatenations in integers, "products" layers with weights
      alone; "auto" is "all" for networks with convolutions;
    * `weights`: "2bit", "4bit" or "8bit": products alone, weights in blocks of `block` inputs that share a scale (and a
      zero point if `asymmetric`), rounded by `algorithm`: "rtn" (to nearest, without data), "gptq" or "awq";
    * `dynamic`: every row of an activation has a scale of its own, found in each call; needs no data;
    * `keep_f32`: names of layers that stay in f32; `worst`: so many of those with the least signal to noise, too;
    * `metric`: a function from a model as a function on a dict of inputs to a number, the larger the better; with
      `max_drop`, layers stay in f32 until it loses no more than that;
    * `bias_correction`, `equalise`, `smoothing` (SmoothQuant's strength);
    * `round_inputs`: of `weights`, inputs in 8 bits by blocks, for products of integers;
    * `prune`: the share of the channels between two layers that is removed first;
    * `dims`: sizes of dimensions that the model leaves open.

    Raises MSC1210 where there is nothing to quantise, MSC1211 and MSC1212 for the data, MSC1213 for a metric that falls
    by more, and what reading and compiling raise.
    """
    module, name = COMPILER
    return getattr(import_module(module), name)(model, data, examples, wishes)
