"""The memory of a server's process, in processes of their own: pools, freed blocks, compiled products."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from runs.memory import PRODUCT_CACHES
from runs.transport import _environment

# Twelve threads that hold memory at one moment, and the pools that they have it from
POOLS = """
import ctypes, sys, threading
from runs.memory import share_memory
assert sys.argv[1] == "as it is" or share_memory(int(sys.argv[1]))
gate = threading.Barrier(12)
def hold():
    gate.wait()
    kept = bytearray(100_000)
    gate.wait()
threads = [threading.Thread(target=hold) for _ in range(12)]
for each in threads: each.start()
for each in threads: each.join()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(sys.argv[2].encode(), b"w"))
libc.malloc_info(0, file), libc.fclose(file)
print(open(sys.argv[2]).read().count("<heap "))
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_the_threads_of_a_server_share_two_pools_of_memory(tmp_path) -> None:
    def pools(arenas: str) -> int:
        command = [sys.executable, "-c", POOLS, arenas, str(tmp_path / "pools.xml")]
        return int(subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout)

    assert pools("2") <= 2 < pools("as it is")


# MB that stay of 80 freed ones, each beside a little that is kept, once a block of 30 has been freed
FREED = """
import ctypes, sys
from runs.memory import return_large_blocks
assert sys.argv[1] == "as it is" or return_large_blocks()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
def used(): return int(next(line for line in open("/proc/self/status") if line.startswith("RssAnon")).split()[1])
libc.free(ctypes.c_void_p(libc.malloc(30 << 20)))
before, blocks = used(), []
for _ in range(20):
    blocks.append(libc.malloc(4 << 20))
    ctypes.memset(blocks[-1], 1, 4 << 20)
    ctypes.memset(libc.malloc(100_000), 1, 1)
for block in blocks: libc.free(ctypes.c_void_p(block))
print((used() - before) // 1024)
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_large_blocks_are_returned_as_they_are_freed() -> None:
    def stay(how: str) -> int:
        command = [sys.executable, "-c", FREED, how]
        return int(subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout)

    assert stay("returned") < 10 and stay("as it is") > 60


# Growth in MB with products of 500 shapes by oneDNN, as a server meets them
SHAPES = """
import sys, torch
from runs.memory import bound_products
if sys.argv[1] == "bound": bound_products()
torch.set_num_threads(1)
torch.set_float32_matmul_precision("medium")
table = torch.randn(192, 192)
def used(): return int(next(line for line in open("/proc/self/status") if line.startswith("RssAnon")).split()[1])
begun = [torch.randn(rows, 192) @ table for rows in (2, 3)] and used()
for rows in range(4, 504): torch.randn(rows, 192) @ table
print((used() - begun) // 1024)
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no Linux")
def test_a_server_does_not_grow_with_every_length_of_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PRODUCT_CACHES:
        monkeypatch.delenv(name, raising=False)

    def growth(how: str) -> int:
        command = [sys.executable, "-c", SHAPES, how]
        return int(subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout)

    free = growth("as it is")
    if free < 100:
        pytest.skip("float32 products are not oneDNN's here")
    assert growth("bound") < free / 2
    for name in PRODUCT_CACHES:
        monkeypatch.setenv(name, PRODUCT_CACHES[name])
    assert not PRODUCT_CACHES.keys() & _environment().keys(), "a worker keeps what its steps need"
