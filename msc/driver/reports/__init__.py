"""What `explain`, `inspect`, `bench` and `--timing` tell."""
