"""Which arithmetic is chosen."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest
import torch

from engine.numerics import choose, has_bfloat16
from tests.engine.cases import for_each

CPU = torch.device("cpu")


@for_each(
    "capability, instructions, native",
    [("AVX512", True, True), ("AVX2", True, False), ("DEFAULT", True, False), ("AVX512", False, False)],
)
def test_a_processor_used_as_an_older_one_is_taken_for_that(
    monkeypatch: pytest.MonkeyPatch, capability: str, instructions: bool, native: bool
) -> None:
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.setattr(torch.cpu, name, lambda: instructions)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert has_bfloat16(CPU) is native
    assert choose("auto", CPU).dtype == (torch.bfloat16 if native else torch.float32)
    assert choose("bfloat16", CPU).dtype == torch.bfloat16, "asked for is asked for"
    assert ("no instructions for it" in choose("bfloat16", CPU).sentence) is not native


# Twelve threads that hold memory at one moment, and the pools that they have it from
POOLS = """
import ctypes, sys, threading
from engine.numerics import share_memory
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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_the_threads_of_a_server_share_two_pools_of_memory(tmp_path) -> None:
    def pools(arenas: str) -> int:
        command = [sys.executable, "-c", POOLS, arenas, str(tmp_path / "pools.xml")]
        return int(subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout)

    assert pools("2") <= 2 < pools("as it is")
