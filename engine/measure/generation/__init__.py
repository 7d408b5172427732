"""The cost of writing with and without a KV cache."""
