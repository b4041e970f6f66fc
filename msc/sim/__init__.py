"""The DaVinci core as a simulator: functional and cycle-level. Its core is C (`core/`); it never sees IR."""
