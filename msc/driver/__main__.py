"""`python -m msc.driver` is the `msc` command."""

from msc.driver.start import main

main()
