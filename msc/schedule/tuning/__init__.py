"""What `msc tune` measures, and the files of what it found."""
