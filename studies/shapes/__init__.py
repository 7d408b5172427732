"""The forward pass as a list of operations and shapes; the backward pass, and one step of an optimiser."""
