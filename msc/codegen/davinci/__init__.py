"""The `davinci` dialect to C with CCE's intrinsics."""
