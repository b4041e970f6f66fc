"""A dense layer whose weight is int8, as quantising tools export it: `quantised.onnx`."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

weight = np.random.default_rng(0).integers(-127, 128, (64, 64)).astype(np.int8)
constants = {"w": weight, "scale": np.float32(0.02), "zero": np.int8(0)}
nodes = [
    helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["xq"]),
    helper.make_node("DequantizeLinear", ["xq", "scale", "zero"], ["xf"]),
    helper.make_node("DequantizeLinear", ["w", "scale", "zero"], ["wf"]),
    helper.make_node("MatMul", ["xf", "wf"], ["y"]),
]
x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 64]) for name in "xy")
initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
graph = helper.make_graph(nodes, "quantised", [x], [y], initializers)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "quantised.onnx")
