"""How plans print seconds and bytes."""

from __future__ import annotations


def seconds_text(seconds: float) -> str:
    """Seconds with the unit that suits them."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e6:.2g} us" if seconds else "0 s"


def memory_text(bytes_: float) -> str:
    """Bytes with the unit that suits them."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if bytes_ >= 1 << power:
            return f"{bytes_ / (1 << power):.1f} {unit}"
    return f"{bytes_:.0f} B"
