"""Benchmarks, run by hand: `python -m benchmarks.<name>`. Ratios come from interleaved runs of one
process.
"""

import os

# As the app's workers do (runs/processes.py): a thread that waits soon gives its core away, so that
# a busy neighbour slows a step by its share and not tenfold. Before torch is imported, for ours and for every
# peer.
os.environ.setdefault("GOMP_SPINCOUNT", "2000")
