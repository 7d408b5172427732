"""Which arithmetic is chosen."""

from __future__ import annotations

import pytest
import torch

from engine.numerics import choose, has_bfloat16

CPU = torch.device("cpu")


@pytest.mark.parametrize(("capability", "native"), [("AVX512", True), ("AVX2", False), ("DEFAULT", False)])
def test_a_processor_used_as_an_older_one_is_taken_for_that(
    monkeypatch: pytest.MonkeyPatch, capability: str, native: bool
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert has_bfloat16(CPU) is native
    assert choose("auto", CPU).dtype == (torch.bfloat16 if native else torch.float32)
    assert choose("bfloat16", CPU).dtype == torch.bfloat16, "asked for is asked for"
    assert ("no instructions for it" in choose("bfloat16", CPU).sentence) is not native


def test_without_the_instructions_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.setattr(torch.cpu, name, lambda: False)
    assert not has_bfloat16(CPU) and choose("auto", CPU).dtype == torch.float32
