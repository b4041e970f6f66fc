"""Weights of a Llama from files: safetensors in a folder of Hugging Face's layout, or GGUF of llama.cpp.

What is quantised there stays packed: blocks of GGUF's Q4_0, Q8_0 and Q4_K, and layers that GPTQ or AWQ packed, become
`nn.PackedDense`. All else is f32. Sources: llama.cpp `gguf-py` and `ggml-quants.c`, AutoGPTQ and AutoAWQ.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NoReturn, cast

import numpy as np

from msc import nn
from msc.dialects.arrays import Array
from msc.dialects.packed_weights import codes_of_bytes
from msc.frontend.errors import ApiValueError
from msc.model_zoo.llama import Llama, LlamaConfig
from msc.nn.packed import PackedDense
from msc.ops import Tensor
from msc.support.files import read_source
from msc.weights.safetensors_file import TensorFile

_ARCHITECTURES = ("llama", "mistral")
_PROJECTIONS = {
    **{f"self_attn.{name}_proj": f"attn_{name}" for name in "qkv"},
    "self_attn.o_proj": "attn_output",
    **{f"mlp.{name}_proj": f"ffn_{name}" for name in ("gate", "up", "down")},
}
"""Dense layers of a layer, with GGUF's names."""
_GGUF_NAMES = {
    **{"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"},
    **{"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"},
    **_PROJECTIONS,
}
_SUPER = 256
"""Numbers of a super-block of GGUF's K types."""


@dataclass(frozen=True)
class PackedRows:
    """A weight `[out, in]` in few bits, as `nn.PackedDense` takes it."""

    codes: Array
    scale: Array
    zero: Array | None = None
    bits: int = 4
    order: Array | None = None

    def picked(self, rows: Array) -> PackedRows:
        """The rows in another order."""
        zero = None if self.zero is None else self.zero[rows]
        return replace(self, codes=self.codes[rows], scale=self.scale[rows], zero=zero)

    def layer(self) -> PackedDense:
        """The dense layer of this weight."""
        block = self.codes.shape[1] // self.scale.shape[1]
        return PackedDense(self.codes, self.scale, self.zero, self.bits, block, None, self.order)


def load_llama(path: str | PathLike[str]) -> Llama:
    """A Llama with the weights of a file.

    `path` is a folder with `config.json` and `model.safetensors` (or the parts that `model.safetensors.index.json`
    names), or a `.gguf` file, for which the package `gguf` is needed. Raises MSC0307 for a model that is no Llama or
    lacks a weight, MSC0001 and MSC030x for files that cannot be read.
    """
    place = Path(fspath(path))
    source = _Gguf(place) if place.suffix == ".gguf" else _Folder(place)
    net = Llama(source.config)
    for cell, name in ((net.model.norm, "model.norm"), *_norms(net)):
        cell.weight.set_data(Tensor(source.reals(name, cell.weight.shape)))
    table = net.model.embed_tokens.embedding_table
    table.set_data(Tensor(source.reals("model.embed_tokens", table.shape)))
    for parent, attribute, name in (*_dense_layers(net), (net, "lm_head", "lm_head")):
        cell = getattr(parent, attribute)
        shape = (cell.out_channels, cell.in_channels)
        given = source.tensor("model.embed_tokens" if name == "lm_head" and source.ties_head else name, shape)
        if isinstance(given, PackedRows):
            setattr(parent, attribute, given.layer())
        else:
            cell.weight.set_data(Tensor(given))
    net.set_train(False)
    return net


def _norms(net: Llama) -> list[tuple[Any, str]]:
    names = ("input_layernorm", "post_attention_layernorm")
    layers = enumerate(net.model.layers)
    return [(getattr(layer, name), f"model.layers.{k}.{name}") for k, layer in layers for name in names]


def _dense_layers(net: Llama) -> list[tuple[nn.Cell, str, str]]:
    found: list[tuple[nn.Cell, str, str]] = []
    for k, layer in enumerate(net.model.layers):
        for name in _PROJECTIONS:
            part, _, attribute = name.partition(".")
            found.append((getattr(layer, part), attribute, f"model.layers.{k}.{name}"))
    return found


class _Source:
    """Base: a model's sizes and weights, by Hugging Face's names without `.weight`."""

    config: LlamaConfig
    ties_head: bool

    def __init__(self, path: Path) -> None:
        self.path = path

    def tensor(self, name: str, shape: tuple[int, ...]) -> Array | PackedRows:
        """A weight in f32, or packed. Raises MSC0307 if it is missing or of another shape."""
        raise NotImplementedError

    def reals(self, name: str, shape: tuple[int, ...]) -> Array:
        """The same in f32. Raises MSC0307 for a weight that is packed and must not be."""
        found = self.tensor(name, shape)
        return found if isinstance(found, np.ndarray) else self.fail(f"'{name}' is packed, which only products can be")

    def fail(self, reason: str, help: str | None = None) -> NoReturn:
        """Raise MSC0307."""
        raise ApiValueError("MSC0307", f"load_llama: '{self.path}': {reason}", help=help)

    def checked(self, name: str, found: Array | PackedRows, shape: tuple[int, ...]) -> Array | PackedRows:
        """What was found, if it has the shape."""
        has = found.codes.shape if isinstance(found, PackedRows) else found.shape
        return found if tuple(has) == shape else self.fail(f"'{name}' has the shape {tuple(has)}, not {shape}")


class _Folder(_Source):
    """`config.json`, and safetensors files."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            given = json.loads(read_source(path / "config.json"))
        except ValueError as error:
            self.fail(f"config.json is no JSON: {error}")
        said: dict[str, Any] = cast(dict[str, Any], given) if isinstance(given, dict) else {}
        if said.get("model_type") not in _ARCHITECTURES:
            self.fail(f"config.json has the model_type {said.get('model_type')!r}, not {' or '.join(_ARCHITECTURES)}")
        for name in ("attention_bias", "mlp_bias"):
            if said.get(name):
                self.fail(f"config.json says {name}, and msc's Llama has no biases")
        if said.get("hidden_act", "silu") != "silu":
            self.fail(f"config.json has the activation {said['hidden_act']}, not silu")
        turning: dict[str, Any] = {**(said.get("rope_parameters") or {}), **(said.get("rope_scaling") or {})}
        known = {each.name: each for each in fields(LlamaConfig)}
        sizes = {name: said[name] for name in known if said.get(name) is not None}
        sizes |= {"rope_theta": turning["rope_theta"]} if "rope_theta" in turning else {}
        for name, value in sizes.items():
            wanted = (int, float) if "float" in str(known[name].type) else int
            if not isinstance(value, wanted) or value < 0:
                self.fail(f"config.json has {name} {value!r}, which is no such number")
        self.config = LlamaConfig.of(sizes)
        self.config = replace(self.config, rope_factors=self._factors(turning))
        self.ties_head = self.config.tie_word_embeddings and "lm_head.weight" not in self._files
        self._packing: dict[str, Any] = said.get("quantization_config") or {}

    def _factors(self, turning: Mapping[str, Any]) -> tuple[float, ...]:
        """What frequencies are divided by: nothing, a number, or as Llama 3.1 does, which leaves the fast ones."""
        kind = turning.get("rope_type", turning.get("type", "default"))
        try:
            if kind == "linear":
                return (float(turning["factor"]),) * (self.config.head_size // 2)
            if kind == "llama3":
                names = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
                factor, low, high, length = (float(turning[name]) for name in names)
                turns = length / (2 * np.pi / self.config.frequencies())
                kept = np.clip((turns - low) / (high - low), 0, 1)
                return tuple((1 / ((1 - kept) / factor + kept)).tolist())
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            self.fail(f"config.json says how to turn without {error}")
        return () if kind == "default" else self.fail(f"config.json turns by '{kind}'; msc knows linear and llama3")

    @cached_property
    def _files(self) -> Mapping[str, TensorFile]:
        """The file of each tensor."""
        index = self.path / "model.safetensors.index.json"
        if not index.exists():
            file = TensorFile(self.path / "model.safetensors")
            return dict.fromkeys(file.entries, file)
        try:
            places = cast(dict[str, str], json.loads(read_source(index))["weight_map"])
            files = {name: TensorFile(self.path / Path(name).name) for name in set(places.values())}
            return {tensor: files[name] for tensor, name in places.items() if tensor in files[name].entries}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self.fail(f"model.safetensors.index.json does not say where tensors are: {error}")

    def _array(self, name: str) -> Array:
        if name not in self._files:
            self.fail(f"there is no tensor '{name}'")
        return self._files[name].array(name)

    def tensor(self, name: str, shape: tuple[int, ...]) -> Array | PackedRows:
        packed = f"{name}.qweight" in self._files
        found = self._packed(name, shape) if packed else self._array(f"{name}.weight").astype(np.float32)
        return self.checked(name, found, shape)

    def _packed(self, name: str, shape: tuple[int, ...]) -> PackedRows:
        """GPTQ packs inputs, and its zero points less one; AWQ packs outputs, of eight the even ones first."""
        method, bits = str(self._packing.get("quant_method")), self._packing.get("bits", 4)
        if method not in ("gptq", "awq") or bits not in (2, 4, 8):
            self.fail(f"'{name}' is packed by {method} in {bits} bits; msc reads gptq and awq in 2, 4 and 8")
        words, zeros = (self._array(f"{name}.{part}").view(np.uint8) for part in ("qweight", "qzeros"))
        scale, zero = self._array(f"{name}.scales").astype(np.float32), codes_of_bytes(zeros, bits)
        order = None
        if method == "gptq":
            codes = codes_of_bytes(np.ascontiguousarray(words.reshape(len(words), -1, 4)).reshape(-1, 4), bits)
            codes = codes.reshape(len(words), -1, codes.shape[1]).transpose(1, 0, 2).reshape(-1, shape[1])
            if self._packing.get("checkpoint_format") != "gptq_v2":
                zero = zero + np.uint8(1) & np.uint8((1 << bits) - 1)
            if f"{name}.g_idx" in self._files:
                blocks = self._array(f"{name}.g_idx")
                order = np.argsort(blocks, kind="stable")
                if np.any(np.bincount(blocks, minlength=len(scale)) != shape[1] // len(scale)):
                    self.fail(f"'{name}' has groups of different sizes")
                codes, order = codes[:, order], None if np.all(order == np.arange(len(order))) else order
        else:
            places = np.argsort([0, 2, 4, 6, 1, 3, 5, 7])
            codes, zero = (each.reshape(len(each), -1, 8)[:, :, places].reshape(len(each), -1) for each in (
                codes_of_bytes(words, bits), zero,
            ))  # fmt: skip
            codes = codes.T
        if codes.shape != shape or scale.shape != zero.shape or scale.shape[1] != shape[0] or shape[1] % len(scale):
            self.fail(f"'{name}' has packed parts whose shapes do not fit {shape}")
        return PackedRows(np.ascontiguousarray(codes), scale.T, np.ascontiguousarray(zero.T), bits, order)


class _Gguf(_Source):
    """A file of llama.cpp, read by the package `gguf`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self._package: Any = import_module("gguf")
        except ImportError:
            self.fail("the package gguf reads it, and is not installed", "pip install 'msc-compiler[gguf]'")
        try:
            reader = self._package.GGUFReader(str(path))
            self._tensors = {str(each.name): each for each in reader.tensors}
            said: dict[str, Any] = {name: each.contents() for name, each in reader.fields.items()}
        except OSError as error:
            self.fail(f"it cannot be read: {error.strerror or error}")
        except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
            self.fail(f"it is no GGUF file, or damaged: {error}")
        kind = said.get("general.architecture")
        if kind != "llama":
            self.fail(f"its architecture is {kind!r}, not llama")
        names = {
            **{"hidden_size": "embedding_length", "intermediate_size": "feed_forward_length"},
            **{"num_hidden_layers": "block_count", "num_attention_heads": "attention.head_count"},
            **{"num_key_value_heads": "attention.head_count_kv", "head_dim": "attention.key_length"},
            **{"rms_norm_eps": "attention.layer_norm_rms_epsilon", "rope_theta": "rope.freq_base"},
        }
        sizes = {name: said[f"llama.{key}"] for name, key in names.items() if f"llama.{key}" in said}
        if "token_embd.weight" not in self._tensors:
            self.fail("there is no tensor 'token_embd.weight'")
        self.config = replace(LlamaConfig.of(sizes), vocab_size=int(self._tensors["token_embd.weight"].shape[1]))
        if "rope_freqs.weight" in self._tensors:
            factors = self._read("rope_freqs.weight", (self.config.head_size // 2,))
            self.config = replace(self.config, rope_factors=tuple(map(float, cast(Array, factors))))
        self.ties_head = "output.weight" not in self._tensors

    def tensor(self, name: str, shape: tuple[int, ...]) -> Array | PackedRows:
        parts = name.split(".")
        inner = ".".join(parts[3:])
        theirs = f"blk.{parts[2]}.{_GGUF_NAMES[inner]}" if inner else _GGUF_NAMES[name]
        found = self._read(f"{theirs}.weight", shape)
        if isinstance(found, PackedRows) and name == "model.embed_tokens":
            found = self._reals(f"{theirs}.weight", shape)
        if inner not in ("self_attn.q_proj", "self_attn.k_proj"):
            return found
        # llama.cpp turns neighbours: the two halves of a head lie there in turns.
        heads = shape[0] // self.config.head_size
        rows = np.arange(shape[0]).reshape(heads, -1, 2).transpose(0, 2, 1).reshape(-1)
        return found.picked(rows) if isinstance(found, PackedRows) else found[rows]

    def _read(self, name: str, shape: tuple[int, ...]) -> Array | PackedRows:
        if name not in self._tensors:
            self.fail(f"there is no tensor '{name}'")
        tensor = self._tensors[name]
        if tuple(int(n) for n in reversed(tensor.shape)) != shape:
            self.fail(f"'{name}' has the shape {tuple(int(n) for n in reversed(tensor.shape))}, not {shape}")
        unpack = UNPACKED.get(tensor.tensor_type.name)
        if unpack is None:
            return self._reals(name, shape)
        return self.checked(name, unpack(np.asarray(tensor.data).reshape(shape[0], -1)), shape)

    def _reals(self, name: str, shape: tuple[int, ...]) -> Array:
        """Any type of GGUF's as f32."""
        tensor = self._tensors[name]
        try:
            made = self._package.quants.dequantize(tensor.data, tensor.tensor_type)
        except (ValueError, NotImplementedError, KeyError) as error:
            self.fail(f"'{name}' is of type {tensor.tensor_type.name}: {error}")
        return np.asarray(made, np.float32).reshape(shape)


def _q4_0(rows: Array) -> PackedRows:
    """Blocks of a scale and 32 numbers: of 16 bytes the low halves first."""
    scale, codes = _blocks(rows, 18)
    return PackedRows(_halves(codes).reshape(len(rows), -1), scale)


def _q8_0(rows: Array) -> PackedRows:
    """Blocks of a scale and 32 signed bytes."""
    scale, codes = _blocks(rows, 34)
    return PackedRows((codes ^ np.uint8(128)).reshape(len(rows), -1), scale, None, 8)


def _q4_k(rows: Array) -> PackedRows:
    """Super-blocks of 8 blocks of 32: two scales, 6 bits of a scale and of a minimum for each block, codes."""
    apart = np.ascontiguousarray(rows.reshape(len(rows), -1, 16 + _SUPER // 2))
    ends = np.ascontiguousarray(apart[:, :, :4]).view(np.float16).astype(np.float32)
    low, high, both = (apart[:, :, k : k + 4] for k in (4, 8, 12))
    scales = np.concatenate((low & 63, both & 15 | low >> 2 & 48), 2) * ends[:, :, :1]
    least = np.concatenate((high & 63, both >> 4 | high >> 2 & 48), 2) * ends[:, :, 1:]
    codes = _halves(apart[:, :, 16:].reshape(len(rows), -1, 4, 32)).reshape(len(rows), -1, 32)
    scales, least = scales.reshape(len(rows), -1), least.reshape(len(rows), -1)
    codes = np.where(scales[:, :, None] == 0, 0, codes).astype(np.uint8)
    scales = np.where(scales == 0, 1, scales).astype(np.float32)
    return PackedRows(codes.reshape(len(rows), -1), scales, (least / scales).astype(np.float32))


def _blocks(rows: Array, size: int) -> tuple[Array, Array]:
    """Scales `[rows, blocks]` of two bytes, and the bytes behind them."""
    apart = np.ascontiguousarray(rows.reshape(len(rows), -1, size))
    scale = np.ascontiguousarray(apart[:, :, :2]).view(np.float16).astype(np.float32)
    return scale[:, :, 0], apart[:, :, 2:]


def _halves(packed: Array) -> Array:
    """The low halves of the bytes of the last axis, then the high ones."""
    return np.concatenate((packed & np.uint8(15), packed >> np.uint8(4)), axis=-1)


UNPACKED = {"Q4_0": _q4_0, "Q8_0": _q8_0, "Q4_K": _q4_k}
"""Types of GGUF that stay packed: their bytes `[out, bytes]` as blocks."""
