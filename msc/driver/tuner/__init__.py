"""The search for faster schedules by measurement."""
