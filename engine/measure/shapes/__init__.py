"""The forward pass as a list of operations and shapes."""
