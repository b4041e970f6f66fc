"""`msc opt` with the pass beside this file, before the pass is in msc."""

from msc.driver.passes.registry import PASSES
from msc.driver.start import main_opt

PASSES["erase-needless-relus"] = "erase_needless_relus:EraseNeedlessRelus"

if __name__ == "__main__":
    main_opt()
