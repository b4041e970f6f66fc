"""Write seeded random weights for the samples that are not trained: mlp, resnet_tiny and attention.

    python samples/random_weights.py

reads each sample's ``ms.parameter`` lines, so names and shapes stand in one place, and writes
``<sample>/<sample>.safetensors`` beside the text.

The scales keep activations near unit size through the depth of a network (He et al., 2015, for weights), and
batch-norm variances are positive.
"""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save

HERE = Path(__file__).resolve().parent
SAMPLES = ("mlp", "resnet_tiny", "attention")
SEED = 20161127
PARAMETER = re.compile(r"ms\.parameter @([\w.]+) : tensor<((?:\d+x)+)f32>")


def parameters(text: str) -> dict[str, tuple[int, ...]]:
    """Name and shape of every ``ms.parameter`` of a ``.mir`` text, in its order."""
    found = PARAMETER.findall(text)
    return {name: tuple(int(size) for size in sizes.split("x")[:-1]) for name, sizes in found}


def draw(name: str, shape: tuple[int, ...], generator: np.random.Generator) -> npt.NDArray[np.float32]:
    """One tensor, its distribution chosen by the last part of its name."""
    kind = name.rsplit(".", 1)[-1]
    if kind == "weight":
        values = generator.standard_normal(shape) * np.sqrt(2.0 / np.prod(shape[1:]))
    elif kind == "gamma":
        values = 1.0 + 0.1 * generator.standard_normal(shape)
    elif kind == "moving_variance":
        values = generator.uniform(0.5, 1.5, shape)
    elif kind in ("bias", "beta", "moving_mean"):
        values = 0.1 * generator.standard_normal(shape)
    else:
        raise ValueError(f"no distribution is defined for parameter '{name}'")
    return values.astype(np.float32)


def weights(name: str, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """A tensor from a stream of its own, so that a new parameter leaves the others as they are."""
    return draw(name, shape, np.random.default_rng([SEED, zlib.crc32(name.encode())]))


def main() -> None:
    """Write one weight file for each sample."""
    for sample in SAMPLES:
        text = (HERE / sample / f"{sample}.mir").read_text(encoding="utf-8")
        tensors = {name: weights(name, shape) for name, shape in parameters(text).items()}
        path = HERE / sample / f"{sample}.safetensors"
        path.write_bytes(save(tensors))
        print(f"{path.relative_to(HERE)}: {len(tensors)} tensors, {sum(t.size for t in tensors.values())} values")


if __name__ == "__main__":
    main()
