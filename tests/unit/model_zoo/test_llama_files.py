"""Llamas from files that the tests write: folders of Hugging Face's layout, packed layers, GGUF."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from msc import Tensor
from msc.dialects.arrays import Array
from msc.interp.meanings.quantisation import packed_weights_of
from msc.model_zoo import Llama, LlamaConfig, load_llama
from msc.model_zoo.llama_files import UNPACKED
from msc.nn.packed import PackedDense
from msc.support.diagnostics import MscError
from msc.weights.safetensors_writing import write_safetensors
from tests.unit.model_zoo.small_networks import tokens, with_random_weights

SIZES: dict[str, Any] = {
    **{"vocab_size": 30, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2},
    **{"num_attention_heads": 4, "num_key_value_heads": 2},
}
CONFIG: dict[str, Any] = {
    **SIZES,
    **{"model_type": "llama", "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 500.0, "max_length": 20},
}
ROW = tokens(1, 6)


@pytest.fixture(scope="module")
def llama() -> Llama:
    net = Llama(LlamaConfig.of(CONFIG))
    with_random_weights(net)
    return net


def named(net: Llama) -> dict[str, Array]:
    """The weights by Hugging Face's names."""
    return {
        name.replace("embedding_table", "weight"): parameter.asnumpy()
        for name, parameter in net.parameters_dict().items()
    }


def written(folder: Path, arrays: dict[str, Array], config: dict[str, Any] | None = None) -> Path:
    (folder / "config.json").write_text(json.dumps(CONFIG if config is None else config), "utf-8")
    write_safetensors(arrays, folder / "model.safetensors")
    return folder


def scores(net: Llama) -> Array:
    return net(Tensor(ROW)).asnumpy()


def test_a_folder_has_the_weights(tmp_path: Path, llama: Llama) -> None:
    np.testing.assert_array_equal(scores(load_llama(written(tmp_path, named(llama)))), scores(llama))


def test_parts_in_few_bits_of_floats_and_a_tied_head(tmp_path: Path, llama: Llama) -> None:
    arrays = {name: array.astype(ml_dtypes.bfloat16) for name, array in named(llama).items() if "lm_head" not in name}
    names = sorted(arrays)
    parts = {"a.safetensors": names[:9], "b.safetensors": names[9:]}
    for file, inside in parts.items():
        write_safetensors({name: arrays[name] for name in inside}, tmp_path / file)
    places = {name: file for file, inside in parts.items() for name in inside}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}), "utf-8")
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, "tie_word_embeddings": True}), "utf-8")
    net = load_llama(tmp_path)
    for name, array in named(net).items():
        given = arrays.get(name, arrays["model.embed_tokens.weight"])
        np.testing.assert_array_equal(array, given.astype(np.float32))


def test_far_places_turn_slower(tmp_path: Path, llama: Llama) -> None:
    """Llama 3.1's: fast frequencies stay, slow ones are divided by the factor; between, a part of both."""
    turning = {
        **{"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
        "original_max_position_embeddings": 64,
    }
    config = load_llama(written(tmp_path, named(llama), {**CONFIG, "rope_scaling": turning})).config
    wanted = list[float]()
    for frequency in LlamaConfig.of(CONFIG).frequencies():
        turns = 64 * frequency / (2 * np.pi)
        part = (turns - 1) / 3
        slow, mixed = frequency / 8, (1 - part) * frequency / 8 + part * frequency
        wanted.append(frequency if turns > 4 else slow if turns < 1 else mixed)
    np.testing.assert_allclose(config.frequencies(), wanted)
    assert len({round(f, 6) for f in config.rope_factors}) == 3


def words(codes: Array, bits: int = 4) -> Array:
    """Rows of codes as int32, the first in the lowest bits."""
    parts = 32 // bits
    made = codes.reshape(len(codes), -1, parts).astype(np.uint32) << np.arange(0, 32, bits, dtype=np.uint32)
    return np.bitwise_or.reduce(made, axis=2).astype(np.uint32).view(np.int32)


@pytest.mark.parametrize("method", ["gptq", "gptq in order", "awq"])
def test_packed_layers_stay_packed(tmp_path: Path, llama: Llama, method: str) -> None:
    """Each product by the weights that the codes, scales and zero points are."""
    arrays, rng = named(llama), np.random.default_rng(1)
    for name in [name for name in arrays if "_proj" in name]:
        n, k = arrays.pop(name).shape
        codes, zero = rng.integers(0, 16, (n, k)), rng.integers(0, 16, (n, k // 16))
        scale = (rng.random((n, k // 16)) * 0.05).astype(np.float16)
        block: Array = np.arange(int(k)) // 16 if method != "gptq in order" else rng.permutation(k) // 16
        base = name.removesuffix(".weight")
        if method == "awq":
            order = np.array([0, 2, 4, 6, 1, 3, 5, 7])
            packed = [
                words(each.T.reshape(-1, each.shape[0] // 8, 8)[:, :, order].reshape(-1, n)) for each in (codes, zero)
            ]
        else:
            packed = [np.ascontiguousarray(words(codes).T), words((zero.T - 1) & 15)]
            arrays[f"{base}.g_idx"] = block.astype(np.int32)
        arrays |= {f"{base}.qweight": packed[0], f"{base}.qzeros": packed[1], f"{base}.scales": scale.T.copy()}
        arrays[f"{base}.wanted"] = ((codes - zero[:, block]) * scale.astype(np.float32)[:, block]).astype(np.float32)
    quantised = {"quant_method": method.split()[0], "bits": 4, "group_size": 16}
    net = load_llama(written(tmp_path, arrays, {**CONFIG, "quantization_config": quantised}))
    x = rng.normal(size=(3, 32)).astype(np.float32)
    for k, layer in enumerate(net.model.layers):
        for name, cell in (("self_attn.k_proj", layer.self_attn.k_proj), ("mlp.up_proj", layer.mlp.up_proj)):
            assert isinstance(cell, PackedDense)
            wanted = x @ arrays[f"model.layers.{k}.{name}.wanted"].T
            np.testing.assert_allclose(cell(Tensor(x)).asnumpy(), wanted, rtol=1e-4, atol=1e-4)


def values(packed: Any, n: int) -> Array:
    layer = packed.layer()
    zero = None if layer.zero is None else layer.zero.asnumpy()
    return packed_weights_of(layer.bits, layer.codes.asnumpy(), layer.scale.asnumpy(), zero)[:n]


def test_blocks_of_gguf() -> None:
    """By ggml's formulas, a number at a time; scales are small floats, all else any bytes."""
    rng = np.random.default_rng(2)

    def half(at: Array) -> float:
        return float(np.ascontiguousarray(at).view(np.float16)[0])

    for name, size in (("Q4_0", 18), ("Q8_0", 34), ("Q4_K", 144)):
        rows = rng.integers(0, 256, (3, 2 * size)).astype(np.uint8)
        starts = range(0, 2 * size, size)
        for start in starts:
            ends = (rng.random((3, 2)) * 0.1).astype(np.float16)
            rows[:, start : start + 4] = ends.view(np.uint8) if name == "Q4_K" else rows[:, start : start + 4]
            rows[:, start : start + 2] = ends[:, :1].copy().view(np.uint8)
        wanted = [[number for start in starts for number in numbers(name, row[start:], half)] for row in rows]
        found = values(UNPACKED[name](rows), 3)
        np.testing.assert_allclose(found, np.array(wanted), rtol=1e-5, atol=1e-5)


def numbers(name: str, b: Array, half: Any) -> list[float]:
    """The numbers of one block."""
    d = half(b[:2])
    if name == "Q8_0":
        return [d * int(np.int8(byte)) for byte in b[2:34].view(np.int8)]
    if name == "Q4_0":
        return [d * (int(byte) % 16 - 8) for byte in b[2:18]] + [d * (int(byte) // 16 - 8) for byte in b[2:18]]
    least, q = half(b[2:4]), [int(byte) for byte in b[4:16]]
    found = list[float]()
    for k in range(8):
        if k < 4:
            scale, low = q[k] & 63, q[k + 4] & 63
        else:
            scale, low = (q[k + 4] & 15) | (q[k - 4] >> 6) << 4, (q[k + 4] >> 4) | (q[k] >> 6) << 4
        codes = [int(byte) // 16 if k % 2 else int(byte) % 16 for byte in b[16 + 32 * (k // 2) : 48 + 32 * (k // 2)]]
        found += [d * scale * code - least * low for code in codes]
    return found


@pytest.mark.parametrize("kind", ["F32", "F16", "Q8_0", "Q4_0"])
def test_a_file_of_llama_cpp(tmp_path: Path, llama: Llama, kind: str) -> None:
    gguf: Any = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(tmp_path / "net.gguf", "llama")
    writer.add_block_count(2)
    writer.add_embedding_length(32)
    writer.add_feed_forward_length(64)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(500.0)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 2)
    arrays, rounded, type_ = named(llama), dict[str, Array](), gguf.GGMLQuantizationType[kind]
    for name, array in arrays.items():
        base, turned = name.removesuffix(".weight"), array
        if base.endswith(("q_proj", "k_proj")):
            turned = array.reshape(-1, 2, 4, array.shape[1]).swapaxes(1, 2).reshape(array.shape)
        own = type_ if array.ndim > 1 else gguf.GGMLQuantizationType.F32
        data = gguf.quants.quantize(turned, own)
        writer.add_tensor(f"{names.get_name(base)}.weight", data, raw_dtype=own)
        back = gguf.quants.dequantize(gguf.quants.quantize(array, own), own)
        rounded[name] = back.astype(np.float32).reshape(array.shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    net, like = load_llama(tmp_path / "net.gguf"), Llama(LlamaConfig.of(CONFIG))
    for name, parameter in like.parameters_dict().items():
        parameter.set_data(Tensor(rounded[name.replace("embedding_table", "weight")]))
    assert isinstance(net.model.layers[0].self_attn.q_proj, PackedDense) == kind.startswith("Q")
    np.testing.assert_allclose(scores(net), scores(like), rtol=1e-4, atol=1e-4)
    whole = (tmp_path / "net.gguf").read_bytes()
    (tmp_path / "net.gguf").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(MscError, match="MSC0307"):
        load_llama(tmp_path / "net.gguf")


@pytest.mark.parametrize(
    "wrong",
    [
        {"model_type": "bert"},
        {"hidden_act": "gelu"},
        {"attention_bias": True},
        {"num_hidden_layers": 3},
        {"hidden_size": 48},
        {"hidden_size": "wide"},
        {"rope_scaling": {"type": "yarn"}},
        {"rope_scaling": {"rope_type": "llama3", "factor": 2}},
    ],
)
def test_what_is_no_such_llama(tmp_path: Path, llama: Llama, wrong: dict[str, Any]) -> None:
    with pytest.raises(MscError, match="MSC0307"):
        load_llama(written(tmp_path, named(llama), {**CONFIG, **wrong}))


def test_files_that_are_not_there_or_damaged(tmp_path: Path) -> None:
    with pytest.raises(MscError, match="MSC0001"):
        load_llama(tmp_path)
    for text, code in (("{", "MSC0307"), ("[]", "MSC0307"), (json.dumps(CONFIG), "MSC0301")):
        (tmp_path / "config.json").write_text(text, "utf-8")
        with pytest.raises(MscError, match=code):
            load_llama(tmp_path)
