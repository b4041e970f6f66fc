"""Compile LeNet-5 with msc, classify the held-out digits, and report accuracy and speed.

    python samples/lenet5/classify.py

`./try-lenet5` does the same in an environment of its own.

Exit code 1 if fewer than 97 % of the digits are right, 2 if the model does not compile.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load

import msc

HERE = Path(__file__).resolve().parent
REQUIRED_ACCURACY = 0.97


def load_digits() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Images f32 [N,1,1,32,32] in [0,1], one batch of one digit each, and labels [N]."""
    tensors = load((HERE / "digits_test.safetensors").read_bytes())
    images = tensors["images"].astype(np.float32) / np.float32(255)
    return images[:, None], tensors["labels"]


def main() -> int:
    """Print the report; the exit code."""
    if set(sys.argv[1:]) & {"-h", "--help"}:
        print(__doc__)
        return 0
    images, labels = load_digits()
    try:
        network = msc.compile(HERE / "lenet5.mir")
    except msc.MscError as error:
        print(error, file=sys.stderr)
        return 2
    start = time.perf_counter()
    predictions = [int(network(image).argmax()) for image in images]
    seconds = time.perf_counter() - start
    right = int(np.sum(predictions == labels))
    print(f"{right} of {len(labels)} held-out digits right: accuracy {right / len(labels):.2%}")
    print(f"{len(labels)} predictions in {seconds * 1e3:.2f} ms: {len(labels) / seconds:,.0f} images/s")
    return 0 if right >= REQUIRED_ACCURACY * len(labels) else 1


if __name__ == "__main__":
    sys.exit(main())
