"""Benchmarks, run by hand: `python -m benchmarks.<name>`. Ratios come from interleaved runs of one process."""
