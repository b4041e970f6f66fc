"""Random programs that make tensors of others and write into both, in PyNative mode and as graphs."""
