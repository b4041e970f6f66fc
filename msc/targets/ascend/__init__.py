"""Machine files of Ascend; `msc.targets.davinci` reads them."""
