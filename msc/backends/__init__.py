"""Back ends, one file each: the stages after `gk`, policies for fusion and layout, strategy, emitter, runner.

`registry` finds them by name, also those that other packages bring (entry-point group `msc.backends`).
"""
