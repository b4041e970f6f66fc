"""Programs of queue instructions for DaVinci cores: builders, tilings, synchronisation."""
