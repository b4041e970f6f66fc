import os
import stat
from pathlib import Path

import pytest

from msc.support.diagnostics import MscError
from msc.support.files import (
    MAXIMUM_SOURCE_BYTES,
    decode_source,
    file_to_write,
    read_source,
    replacing,
    write_bytes,
    write_text,
)
from msc.support.hashing import digest, file_digest


def code_of(error: pytest.ExceptionInfo[MscError]) -> str:
    return error.value.diagnostics[0].code


def test_written_text_is_read_back(tmp_path: Path) -> None:
    write_text(tmp_path / "a.mir", "é\n")
    assert read_source(tmp_path / "a.mir") == "é\n"
    assert stat.S_IMODE((tmp_path / "a.mir").stat().st_mode) & 0o400


def fail_while_writing(path: Path) -> None:
    with replacing(path) as file:
        file.write(b"new")
        raise ZeroDivisionError


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    write_bytes(tmp_path / "a", b"old")
    with pytest.raises(ZeroDivisionError):
        fail_while_writing(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("name", ["missing/a", "folder"])
def test_unwritable(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(MscError) as error:
        write_bytes(tmp_path / name, b"")
    assert code_of(error) == "MSC0004"
    assert os.listdir(tmp_path) == ["folder"]


def test_unreadable(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(MscError) as error:
            read_source(path)
        assert code_of(error) == "MSC0001"


def test_source_must_be_utf8_of_bounded_size() -> None:
    with pytest.raises(MscError) as error:
        decode_source(b"ab\nc\xff", "f")
    assert code_of(error) == "MSC0003"
    assert str(error.value.diagnostics[0].location) == "f:2:2"
    with pytest.raises(MscError) as error:
        decode_source(bytes(MAXIMUM_SOURCE_BYTES + 1), "f")
    assert code_of(error) == "MSC0002"


def test_byte_order_mark_and_line_ends_are_normalised() -> None:
    assert decode_source("\ufeffa\r\nb".encode(), "f") == "a\nb"


def test_digests(tmp_path: Path) -> None:
    assert digest(["ab", "c"]) != digest(["a", "bc"])
    assert digest(["é"]) == digest(["é".encode()])
    write_bytes(tmp_path / "x", b"abc")
    assert file_digest(tmp_path / "x").startswith("ba7816bf")


@pytest.mark.parametrize("path", ["out/", "a/out//", "out/.", "out/..", ".", "..", "/"])
def test_the_name_of_a_folder_is_none_of_a_file(path: str) -> None:
    with pytest.raises(MscError, match="MSC0004"):
        file_to_write(path)


@pytest.mark.parametrize("path", ["out", "a/out.c", ".hidden", "a..", "..a"])
def test_names_of_files(path: str) -> None:
    assert file_to_write(path) == Path(path)
