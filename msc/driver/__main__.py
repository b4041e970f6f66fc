"""`python -m msc.driver` is the `msc` command."""

from msc.driver.cli import main

main()
