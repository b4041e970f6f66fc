"""Lines of a schedule's text are found again in its tree: errors quote them."""

from msc.poly.schedule_tree.text import from_lines, line_of


def test_a_line_is_found_again() -> None:
    lines = """\
axis m 8: S0.0
axis n 8: S0.1

for m tile 2
  place t0, t1 in stack
  place t2 in register
  prefetch in0 ahead 4 of m
  for m
    head n to 4
      for n vector
        run S0
    tail n from 4
      for n
        run S0""".split("\n")
    read = from_lines(lines)
    for number, line in enumerate(lines, 1):
        assert line_of(read, number) == (None if number in (3, 12) else line.strip())
    joined = from_lines(["axis m 8: S0.0", "axis n 8: S0.1", "for m tile 2, m, n vector", "  run S0"])
    assert line_of(joined, 3) == "for m tile 2, m, n vector"
