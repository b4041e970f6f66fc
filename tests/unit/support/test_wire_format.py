"""Checksums of record files."""

from __future__ import annotations

from msc.support.wire_format import crc32c, crc32c_in_python


def test_both_checksums_are_those_of_the_standard() -> None:
    """RFC 3720, appendix B.4; the last is the check value of catalogues."""
    for data, wanted in ((bytes(32), 0x8A9136AA), (bytes(range(32)), 0x46DD794E), (b"123456789", 0xE3069283)):
        assert crc32c_in_python(data) == wanted
        assert crc32c()(data) == wanted
