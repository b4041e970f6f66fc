"""What a Python user sees of a mistake: the line that made it and the message."""

from __future__ import annotations

import traceback

import pytest

import msc


def mistake() -> str:
    with pytest.raises(msc.MscError) as caught:
        msc.compile("there-is-no-such-file.mir")
    return "".join(traceback.format_exception(caught.value))


def test_no_frame_of_the_inside_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MSC_TRACEBACK", raising=False)
    shown = mistake()
    assert "MSC0001" in shown
    assert shown.count('File "') == 1
    assert "direct cause" not in shown


def test_msc_traceback_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSC_TRACEBACK", "1")
    assert mistake().count('File "') > 2
