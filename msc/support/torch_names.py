"""Names of PyTorch's that msc does not have, and what does the same here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msc.support.diagnostics import did_you_mean

_GRADIENT = "msc.value_and_grad(function, None, net.trainable_params()) gives the loss and the gradients"
_EVALUATE = "net.set_train(False); Model.eval and Model.predict do it themselves"
_DEVICE = "there are no devices to move to: networks run on the CPU, compiled or not"
_LOAD = 'msc.load_param_into_net(net, msc.load_checkpoint("net.ckpt"))'
_SAVE = 'net.parameters_dict() has the parameters by name; msc.save_checkpoint(net, "net.ckpt") writes them'
_PARAMETERS = "net.trainable_params(); net.parameters_and_names() gives pairs of names and parameters"
_DATA = "msc.dataset.GeneratorDataset(source, columns).batch(32); NumpySlicesDataset takes arrays"
_LOSSES = (
    "losses are nn.CrossEntropyLoss, nn.MSELoss, nn.BCEWithLogitsLoss, nn.L1Loss, ...; nn.LossBase is for your own"
)

TORCH_NAMES: Mapping[str, str] = {
    "Module": "a network is a class Net(nn.Cell), with construct for forward",
    "ModuleList": "nn.CellList",
    "ModuleDict": "nn.CellDict",
    "Sequential": "nn.SequentialCell",
    "ParameterList": "msc.ParameterTuple",
    "functional": "functions are in msc.ops: ops.relu, ops.softmax, ops.cross_entropy",
    "F": "functions are in msc.ops: ops.relu, ops.softmax, ops.cross_entropy",
    "init": "msc.common.initializer has Normal, XavierUniform, HeNormal, ...: nn.Dense(3, 4, weight_init=HeNormal())",
    "optim": "optimizers are in nn: nn.Adam(net.trainable_params(), 1e-3)",
    "lr_scheduler": "a schedule is a learning rate: nn.Adam(parameters, nn.cosine_decay_lr(0.001, 0.1, 100, 10, 10))",
    "backward": _GRADIENT,
    "autograd": _GRADIENT,
    "requires_grad": "a Parameter has requires_grad; msc.grad says what to differentiate by",
    "requires_grad_": "a Parameter has requires_grad; msc.grad says what to differentiate by",
    "grad_fn": _GRADIENT,
    "zero_grad": "gradients are results, not kept: there is nothing to reset; optimizer(gradients) takes a step",
    "step": "optimizer(gradients) takes a step, with the gradients that msc.value_and_grad gives",
    "param_groups": "the optimizer takes groups as a list of dictionaries; get_lr() gives the rate",
    "no_grad": "nothing is needed: only msc.grad and msc.value_and_grad compute gradients; ops.stop_gradient(x)",
    "inference_mode": f"nothing is needed to switch gradients off; {_EVALUATE}",
    "set_grad_enabled": "nothing is needed: only msc.grad and msc.value_and_grad compute gradients",
    "enable_grad": "nothing is needed: msc.grad and msc.value_and_grad compute gradients",
    "eval": _EVALUATE,
    "train": "net.set_train(), net.set_train(False); Model(net, loss, optimizer).train(epochs, data) trains",
    "forward": "the method is construct, and net(x) calls it",
    "parameters": _PARAMETERS,
    "named_parameters": _PARAMETERS,
    "modules": "net.cells_and_names() gives all cells, net.cells() those directly below",
    "named_modules": "net.cells_and_names()",
    "children": "net.cells()",
    "named_children": "net.name_cells()",
    "state_dict": _SAVE,
    "load_state_dict": _LOAD,
    "save": 'msc.save_checkpoint(net, "net.ckpt"); msc.export(net, x, file_name="net.onnx") for the whole model',
    "register_buffer": "a Parameter with requires_grad=False: msc.Parameter(value, name='mean', requires_grad=False)",
    "register_parameter": "assign it in __init__: self.weight = msc.Parameter(value)",
    "add_module": "assign it in __init__: self.layer = nn.Dense(3, 4); later net.insert_child_to_cell(name, cell)",
    "weight_norm": "it is not there; write the weight as an expression in construct",
    "clip_grad_norm_": "ops.clip_by_global_norm(gradients, 1.0)",
    "cuda": _DEVICE,
    "to": f"{_DEVICE}; net.to_float(msc.float16) and x.astype(msc.float16) change the element type",
    "device": _DEVICE,
    "is_cuda": _DEVICE,
    "is_available": _DEVICE,
    "half": "net.to_float(msc.float16); msc.amp.auto_mixed_precision(net, 'O2') keeps what needs f32",
    "double": "net.to_float(msc.float64)",
    "DataLoader": _DATA,
    "TensorDataset": _DATA,
    "utils": f"data are in msc.dataset: {_DATA}",
    "datasets": _DATA,
    "compile": "msc.compile(net, x), or @msc.jit on a function; msc.set_context(mode=msc.GRAPH_MODE)",
    "script": "msc.jit(function), or msc.compile(net, x)",
    "trace": "msc.compile(net, x) captures it for inputs of the shapes of x",
    "onnx": 'msc.export(net, x, file_name="net.onnx") writes ONNX; msc.compile("net.onnx") reads it',
    "float": "msc.float32",
    "long": "msc.int64",
    "FloatTensor": "msc.Tensor([1.0, 2.0]), of Float32",
    "LongTensor": "msc.Tensor([1, 2]), of Int64",
    "SummaryWriter": "SummaryCollector of msc.train.callback writes TensorBoard's files",
    "LossFn": _LOSSES,
}
"""PyTorch's name, without what it belongs to -> what is here instead."""

_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "lr": ("learning_rate",),
    "betas": ("beta1", "beta2"),
    "in_features": ("in_channels",),
    "out_features": ("out_channels",),
    "num_embeddings": ("vocab_size",),
    "embedding_dim": ("embedding_size",),
    "bias": ("has_bias",),
    "groups": ("group",),
    "padding_mode": ("pad_mode",),
    "negative_slope": ("alpha",),
    "dim": ("axis",),
    "keepdim": ("keep_dims", "keepdims"),
}
"""PyTorch's name of an argument -> names that it has here, one of which a function takes."""


def argument_hint(name: str, known: Iterable[str]) -> str | None:
    """Advice for an argument that a function does not take, which takes those of the names in `known`."""
    names = list(known)
    here = [each for each in _ARGUMENTS.get(name, ()) if each in names]
    return f"{name} is {' and '.join(here)} here" if here else did_you_mean(name, names)


def hint(name: str, known: Iterable[str]) -> str | None:
    """Advice for a name that does not exist: what it is here if it is PyTorch's, else the name that is most like it.

    A name that is there in other letters, as `relu` for ReLU, is what is meant.
    """
    names = list(known)
    if name in TORCH_NAMES and name.lower() not in {each.lower() for each in names}:
        return f"for PyTorch's {name}: {TORCH_NAMES[name]}"
    return did_you_mean(name, names)
