"""The residual stream, layer by layer."""
