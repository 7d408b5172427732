"""The memory of a process that serves or measures: its pools, and when what is freed goes back."""

from __future__ import annotations

import os

from engine.training.numerics import with_glibc

# Variables by which oneDNN and torch are told how many compiled products they keep
PRODUCT_CACHES = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64", "LRU_CACHE_CAPACITY": "64"}


def share_memory(arenas: int = 2) -> bool:
    """Asks glibc's allocator for at most `arenas` pools of memory in this whole process, for all its threads.
    For a server, early: pools that are there stay, and with more than eight glibc has settled on a number.

    By default there are eight a core, and each keeps for itself what was freed in it, while a server draws
    every page in a new thread. Returns False where there is no such allocator.
    """
    m_arena_max = -8
    return with_glibc(lambda libc: libc.mallopt(m_arena_max, arenas))


def return_large_blocks(size: int = 2**20) -> bool:
    """Asks glibc's allocator to return freed blocks of `size` bytes or more at once, in this whole process.

    By default that size grows to the largest block freed so far, up to 32 MB: freed memory then stays, in
    pieces that the next large block does not fit into. Returns False where there is no such allocator.
    """
    m_mmap_threshold = -3
    return with_glibc(lambda libc: libc.mallopt(m_mmap_threshold, size))


def return_memory() -> bool:
    """Has glibc's allocator return freed memory to the system. Returns False where there was none, or where
    there is no such allocator.
    """
    return with_glibc(lambda libc: libc.malloc_trim(0))


def bound_products() -> None:
    """Has oneDNN and torch keep few compiled products (PRODUCT_CACHES) in this whole process. For a server,
    before the first product.

    One is compiled for each shape, of about 0.7 MB, and by default the last 1,024 are kept: a server that
    reads texts of every length grows by each. Not for a worker, whose shapes come again at every step.
    """
    for name, capacity in PRODUCT_CACHES.items():
        os.environ.setdefault(name, capacity)
