"""Back ends, one file each: its stages, fusion and layouts, its code generator, how programs run.

`registry` finds them by name, also those that other packages bring (entry-point group `msc.backends`).
"""
