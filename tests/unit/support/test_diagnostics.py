from msc.support.diagnostics import Diagnostic, Location, MscError, near_match, render


def test_rendered_form() -> None:
    diagnostic = Diagnostic("MSC0201", "bad", Location("a.mir", 12, 5), "ab  cd", 2, ("one", "two"), "try")
    assert render(diagnostic).split("\n") == [
        "error[MSC0201]: bad",
        " --> a.mir:12:5",
        "   |",
        "12 | ab  cd",
        "   |     ^^",
        "note: one",
        "note: two",
        "help: try",
    ]


def test_error_joins_its_diagnostics() -> None:
    assert str(MscError(Diagnostic("MSC0001", "a"), Diagnostic("MSC0002", "b"))) == (
        "error[MSC0001]: a\n\nerror[MSC0002]: b"
    )


def test_carets_stand_below_tabs_and_wide_characters() -> None:
    lines = render(Diagnostic("MSC0100", "m", Location("f", 1, 5), "\t日本 foo", 3)).split("\n")
    assert lines[-2:] == ["1 |     日本 foo", "  |          ^^^"]


def test_a_caret_beyond_the_line_is_shown() -> None:
    assert render(Diagnostic("MSC0100", "m", Location("f", 1, 99), "ab")).endswith("|   ^")


def test_control_characters_do_not_reach_the_terminal() -> None:
    text = render(Diagnostic("MSC0100", "\x1b[31mred\u202e", Location("\x07.mir", 1, 1), "\x1b]0;t\x07"))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text


def test_a_long_line_is_cut_around_the_caret() -> None:
    text = render(Diagnostic("MSC0100", "m", Location("f", 1, 500_001), "x" * 500_000 + "HERE" + "y" * 500_000, 4))
    assert "HERE" in text
    assert len(text) < 600


def test_near_match() -> None:
    assert near_match("conv2", ["ms.relu", "conv2d"]) == "conv2d"
    assert near_match("CONV2D", ["conv2d"]) == "conv2d"
    assert near_match("zzz", ["conv2d"]) is None


def test_a_line_break_in_a_name_begins_no_message() -> None:
    forged = "x\nerror[MSC9999]: FORGED\n --> y:1:1"
    found = Diagnostic("MSC0001", f"'{forged}'", Location(forged, 1, 1), forged, 1, (forged,), forged)
    begins = [
        line for line in render(found).splitlines() if line.startswith(("error", " -->", "note", "help", "FORGED"))
    ]
    assert [line.split("x")[0].rstrip("'") for line in begins] == ["error[MSC0001]: ", " --> ", "note: ", "help: "]
