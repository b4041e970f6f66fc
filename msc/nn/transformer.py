"""Attention with several heads, and the layers of the transformer (Vaswani et al., 2017)."""

from __future__ import annotations

import copy
import math
from typing import Any, ClassVar

from msc import ops
from msc.frontend import dtypes
from msc.frontend.dtypes import DTypeLike
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.parameter import Parameter
from msc.frontend.tensor import Tensor
from msc.nn.activation import Activation, activation_of
from msc.nn.arguments import positive
from msc.nn.basic import Dense, Dropout
from msc.nn.cell import Cell
from msc.nn.containers import CellList
from msc.nn.normalisation import LayerNorm
from msc.nn.parameters import parameter

__all__ = [
    "MultiheadAttention", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer",
]  # fmt: skip


class MultiheadAttention(Cell):
    """softmax(Q K^T / sqrt(head) + mask) V for each head, then a dense layer: `[length, batch, embed]`.

    With `batch_first` tensors are `[batch, length, embed]`. A boolean mask is true where attention is forbidden; one of
    floats is added. Gives the output and, if `need_weights`, the weights, averaged over heads if asked.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        has_bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        positive("MultiheadAttention", embed_dim=embed_dim, num_heads=num_heads)
        if embed_dim % num_heads:
            raise ApiValueError(
                "MSC0824", f"MultiheadAttention: {num_heads} heads do not divide an embedding of {embed_dim}"
            )
        if add_bias_kv or add_zero_attn:
            raise ApiValueError("MSC0824", "MultiheadAttention: add_bias_kv and add_zero_attn are not there")
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.same = self.kdim == self.vdim == embed_dim
        if self.same:
            self.in_proj_weight = parameter("xavier_uniform", (3 * embed_dim, embed_dim), "in_proj_weight", dtype)
        else:
            self.q_proj_weight = parameter("xavier_uniform", (embed_dim, embed_dim), "q_proj_weight", dtype)
            self.k_proj_weight = parameter("xavier_uniform", (embed_dim, self.kdim), "k_proj_weight", dtype)
            self.v_proj_weight = parameter("xavier_uniform", (embed_dim, self.vdim), "v_proj_weight", dtype)
        self.in_proj_bias = parameter("zeros", (3 * embed_dim,), "in_proj_bias", dtype) if has_bias else None
        self.out_proj = Dense(embed_dim, embed_dim, bias_init="zeros", has_bias=has_bias, dtype=dtype)

    def construct(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
    ) -> tuple[Tensor, Tensor | None]:
        single = query.ndim == 2
        if single:
            query, key, value = (ops.expand_dims(x, 0 if self.batch_first else 1) for x in (query, key, value))
        if not self.batch_first:
            query, key, value = (ops.swapaxes(x, 0, 1) for x in (query, key, value))
        q, k, v = (self._heads(x) for x in self._projected(query, key, value))
        scores = ops.batch_matmul(ops.mul(q, 1 / math.sqrt(self.head_dim)), k, transpose_b=True)
        for mask in (self._expanded(attn_mask), self._padding(key_padding_mask)):
            if mask is not None:
                scores = _masked(scores, mask)
        weights = ops.dropout(ops.softmax(scores, -1), self.dropout, self.training)
        mixed = ops.swapaxes(ops.matmul(weights, v), 1, 2)
        output = self.out_proj(ops.reshape(mixed, (*mixed.shape[:2], self.embed_dim)))
        if not self.batch_first:
            output = ops.swapaxes(output, 0, 1)
        shown = ops.mean(weights, 1) if average_attn_weights else weights
        if single:
            output, shown = ops.squeeze(output, 0 if self.batch_first else 1), ops.squeeze(shown, 0)
        return output, shown if need_weights else None

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        weights = (
            ops.split(self.in_proj_weight, self.embed_dim, 0)
            if self.same
            else (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        )
        biases: Any = (None,) * 3 if self.in_proj_bias is None else ops.split(self.in_proj_bias, self.embed_dim, 0)
        return [ops.dense(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]

    def _heads(self, x: Tensor) -> Tensor:
        """`[batch, length, embed]` as `[batch, heads, length, head]`."""
        return ops.swapaxes(ops.reshape(x, (*x.shape[:2], self.num_heads, self.head_dim)), 1, 2)

    def _expanded(self, mask: Tensor | None) -> Tensor | None:
        """A mask `[length, keys]`, or one for each head of each example, as `[batch, heads, length, keys]`."""
        if mask is None or mask.ndim == 2:
            return mask
        return ops.reshape(mask, (-1, self.num_heads, *mask.shape[1:]))

    def _padding(self, mask: Tensor | None) -> Tensor | None:
        """A mask `[batch, keys]` as `[batch, 1, 1, keys]`."""
        return None if mask is None else ops.reshape(mask, (-1, 1, 1, mask.shape[-1]))


def _masked(scores: Tensor, mask: Tensor) -> Tensor:
    if mask.dtype is dtypes.bool_:
        return ops.where(mask, Tensor(-math.inf, scores.dtype), scores)
    return ops.add(scores, mask)


class _Layer(Cell):
    """Base of encoder and decoder layers: the feed-forward part and how parts are joined."""

    READS_MEMORY: ClassVar[bool] = False
    """Whether the layer also attends to the output of an encoder."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, dtype=dtype)
        if self.READS_MEMORY:
            self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, dtype=dtype)
        self.linear1 = Dense(d_model, dim_feedforward, dtype=dtype)
        self.dropout = Dropout(p=dropout)
        self.linear2 = Dense(dim_feedforward, d_model, dtype=dtype)
        for i in range(1, 4 if self.READS_MEMORY else 3):
            setattr(self, f"norm{i}", LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype))
            setattr(self, f"dropout{i}", Dropout(p=dropout))
        self.activation = activation_of(activation)
        if self.activation is None:
            raise ApiTypeError("MSC0825", f"{type(self).__name__} needs an activation")
        self.norm_first = norm_first

    def _fed(self, x: Tensor) -> Tensor:
        assert self.activation is not None
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward part, each with a sum past it and a layer norm, behind it or before."""

    def construct(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None
    ) -> Tensor:
        def attended(x: Tensor) -> Tensor:
            return self.dropout1(self.self_attn(x, x, x, src_key_padding_mask, False, src_mask)[0])

        if self.norm_first:
            x = ops.add(src, attended(self.norm1(src)))
            return ops.add(x, self.dropout2(self._fed(self.norm2(x))))
        x = self.norm1(ops.add(src, attended(src)))
        return self.norm2(ops.add(x, self.dropout2(self._fed(x))))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to an encoder's output, and a feed-forward part."""

    READS_MEMORY: ClassVar[bool] = True

    def construct(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        def own(x: Tensor) -> Tensor:
            return self.dropout1(self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask)[0])

        def other(x: Tensor) -> Tensor:
            found = self.multihead_attn(x, memory, memory, memory_key_padding_mask, False, memory_mask)
            return self.dropout2(found[0])

        if self.norm_first:
            x = ops.add(tgt, own(self.norm1(tgt)))
            x = ops.add(x, other(self.norm2(x)))
            return ops.add(x, self.dropout3(self._fed(self.norm3(x))))
        x = self.norm1(ops.add(tgt, own(tgt)))
        x = self.norm2(ops.add(x, other(x)))
        return self.norm3(ops.add(x, self.dropout3(self._fed(x))))


def copies(layer: Cell, count: int) -> CellList:
    """A list of copies of a layer, with parameters of their own."""
    return CellList([cloned(layer) for _ in range(count)])


def cloned(cell: Cell) -> Cell:
    """A copy of a cell with parameters of its own."""
    memo: dict[int, Any] = {id(p): Parameter(p, p.name, p.requires_grad) for p in cell.get_parameters()}
    return copy.deepcopy(cell, memo)


class TransformerEncoder(Cell):
    """Copies of an encoder layer one after the other, then a norm, if any."""

    def __init__(self, encoder_layer: Cell, num_layers: int, norm: Cell | None = None) -> None:
        super().__init__()
        self.layers = copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def construct(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None
    ) -> Tensor:
        for layer in self.layers:
            src = layer(src, src_mask, src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Cell):
    """Copies of a decoder layer one after the other, then a norm, if any."""

    def __init__(self, decoder_layer: Cell, num_layers: int, norm: Cell | None = None) -> None:
        super().__init__()
        self.layers = copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def construct(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Cell):
    """Encoder and decoder."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Cell | None = None,
        custom_decoder: Cell | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        arguments: Any = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first)

        def norm() -> LayerNorm:
            return LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*arguments, dtype=dtype), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*arguments, dtype=dtype), num_decoder_layers, norm()
        )

    def construct(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
