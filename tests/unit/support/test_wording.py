"""Words of messages."""

from msc.support.wording import counted


def test_one_is_singular() -> None:
    assert [counted(n, "kernel") for n in (0, 1, 2, 12345)] == ["0 kernels", "1 kernel", "2 kernels", "12,345 kernels"]
