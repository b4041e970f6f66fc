"""What people bring along from other frameworks: their objects and files, and how each gets here.

None of these frameworks is imported: an object is known by the module that its class comes from.
"""

from __future__ import annotations

import sys
from typing import Any

_OF_MODULE = {
    "torch": "PyTorch", "torchvision": "PyTorch", "tensorflow": "TensorFlow", "keras": "Keras", "tf_keras": "Keras",
    "jax": "JAX", "jaxlib": "JAX", "flax": "JAX", "mindspore": "MindSpore", "paddle": "PaddlePaddle", "mxnet": "MXNet",
}  # fmt: skip
"""The first word of a module's name -> what the framework is called."""

_EXPORT = {
    "PyTorch": (
        'torch.onnx.export(net, (x,), "net.onnx", dynamo=True, external_data=False) writes ONNX, which msc reads; '
        "a Cell of msc has the same layers: class Net(nn.Cell), with construct for forward"
    ),
    "TensorFlow": "python -m tf2onnx.convert --saved-model FOLDER --output net.onnx writes it as ONNX, which msc reads",
    "Keras": 'net.export("net.onnx", format="onnx") writes it as ONNX, which msc reads',
    "JAX": "jax2onnx and tf2onnx write functions of JAX as ONNX, which msc reads",
    "MindSpore": 'mindspore.export(net, x, file_name="net", file_format="ONNX") writes it as ONNX, which msc reads',
    "PaddlePaddle": "paddle2onnx writes it as ONNX, which msc reads",
}
"""Framework -> how a model of it gets here."""

_FILES = {
    ".pt": ("PyTorch", "PyTorch"),
    ".pth": ("PyTorch", "PyTorch"),
    ".pt2": ("PyTorch", "PyTorch"),
    ".ptl": ("PyTorch", "PyTorch"),
    ".pb": ("TensorFlow", "TensorFlow"),
    ".h5": ("Keras", "Keras"),
    ".hdf5": ("Keras", "Keras"),
    ".keras": ("Keras", "Keras"),
    ".mindir": ("MindSpore", "MindSpore"),
    ".air": ("MindSpore", "MindSpore"),
    ".pdmodel": ("PaddlePaddle", "PaddlePaddle"),
    ".ckpt": ("a checkpoint", ""),
    ".safetensors": ("a file of weights", ""),
    ".npz": ("NumPy", ""),
    ".npy": ("NumPy", ""),
    ".gguf": ("llama.cpp", ""),
    ".mlmodel": ("Core ML", ""),
    ".mlpackage": ("Core ML", ""),
    ".engine": ("TensorRT", ""),
    ".caffemodel": ("Caffe", ""),
}
"""Ending of a file -> whose it is, and the framework that can export it."""

_ADVICE = {
    ".ckpt": "it has weights and no model: msc.load_checkpoint reads it, msc.load_param_into_net gives them to a Cell",
    ".safetensors": "it has weights and no model: a .mir names it with ms.weights; msc inspect shows what is in it",
    ".npz": "it has arrays and no model; a model is .mir, .onnx or a Cell",
    ".npy": "it has an array and no model: --input NAME=@FILE.npy gives it to a model",
    ".gguf": "convert the model to ONNX, for example with optimum-cli export onnx, which msc reads",
    ".mlmodel": "export the model that it was made of as ONNX, which msc reads",
    ".mlpackage": "export the model that it was made of as ONNX, which msc reads",
    ".engine": "export the model that it was made of as ONNX, which msc reads",
    ".caffemodel": "export the model that it was made of as ONNX, which msc reads",
}


def framework_of(value: object) -> str | None:
    """The framework that an object, or a class, comes from; None for Python's own and everybody else's."""
    kind: type[Any] = value if isinstance(value, type) else type(value)
    roots = (base.__module__.partition(".")[0] for base in kind.__mro__)
    return next((_OF_MODULE[root] for root in roots if root in _OF_MODULE), None)


def is_tensor(value: object) -> bool:
    """Whether an object is a tensor of another framework."""
    has_elements = hasattr(value, "__array__") or hasattr(value, "numpy")
    return framework_of(value) is not None and has_elements and not isinstance(value, type)


def to_array(value: Any) -> Any:
    """The elements of another framework's tensor as a NumPy array, without its gradient. Raises what it raises."""
    for step in ("detach", "cpu"):
        method = getattr(value, step, None)
        value = method() if callable(method) else value
    if str(getattr(value, "dtype", "")) == "torch.bfloat16":  # which PyTorch gives to nobody
        import ml_dtypes

        return value.view(sys.modules["torch"].int16).numpy().view(ml_dtypes.bfloat16)
    import numpy as np

    return np.asarray(value)


def advice_for(value: object) -> str | None:
    """What to do with an object of another framework where a network, or a part of one, is wanted."""
    framework = framework_of(value)
    if framework is None:
        return None
    if is_tensor(value):
        return "msc.Tensor(x) is a tensor of msc with a copy of its elements"
    return _EXPORT.get(framework, "export it as ONNX, which msc reads")


def export_advice(name: str) -> str | None:
    """What to write in place of another framework's format that msc does not write."""
    if f".{name.lower()}" not in _FILES:
        return None
    return "file_format='MIR' writes msc's own text and weights, file_format='ONNX' what others read"


def file_advice(name: str) -> tuple[str, str] | None:
    """Whose format a file name's ending is, and how such a model gets here."""
    ending = next((each for each in _FILES if name.lower().endswith(each)), None)
    if ending is None:
        return None
    owner, framework = _FILES[ending]
    return owner, _ADVICE.get(ending) or _EXPORT[framework]
