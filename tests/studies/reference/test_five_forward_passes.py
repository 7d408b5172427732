"""A forward pass is written down five times: random configurations hold all of them to the same logits.

1. `engine.model`, of parts: what is trained and looked into.
2. `engine.nano`: one file to read.
3. `studies.generation.single_row`: one token at a time, for speed.
4. `studies.lab.reference.second`: from the papers, the engine's reference.
5. The file that *Export* writes (`studies.weights.export.single_file`).
"""

from __future__ import annotations

import sys
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random

import torch
from torch import Tensor

from engine import nano
from engine.config import ModelConfig
from engine.model import Transformer
from engine.sample import Decoder
from studies.generation.single_row import is_fast
from studies.lab.reference import random_configs
from studies.lab.reference.second import forward
from studies.weights.export import pack
from studies.weights.export.single_file import export_single_file, nano_sizes
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny

COVERED = {kind: {"second", "exported"} for kind in random_configs.KINDS}
for kind in ("llama", "gpt2", "qwen2", "neox", "qwen3", "gemma", "bloom"):  # causal, without a window
    COVERED[kind].add("fast")
COVERED["nano"] = {"second", "exported", "fast", "nano"}


def by_nano(model: Transformer, ids: Tensor) -> Tensor | None:
    if (sizes := nano_sizes(model)) is None:
        return None
    other = nano.GPT(sizes)
    other.load_state_dict(model.state_dict())
    return other.eval()(ids[None])[0]


def by_rows(model: Transformer, ids: Tensor) -> Tensor | None:
    if not (model.can_cache and is_fast(model)):
        return None
    decoder = Decoder(model)
    assert decoder._fast is not None
    with torch.inference_mode():
        return torch.stack([decoder.read([i]) for i in ids.tolist()]).clone()


def by_papers(model: Transformer, ids: Tensor) -> Tensor:
    return next(reversed(forward(model.config, dict(model.named_parameters()), ids).values()))


def by_file(model: Transformer, ids: Tensor, folder: Path) -> Tensor:
    (folder / "model.py").write_text(export_single_file(model, "exported"))
    (folder / "model.safetensors").write_bytes(pack.engine_weights(model, "float32"))
    spec = spec_from_file_location("exported", folder / "model.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        return module.load(folder / "model.safetensors")(ids[None])[0]
    finally:
        del sys.modules[spec.name]


def drawn(kind: str, seed: int) -> tuple[Transformer, Tensor]:
    if kind != "nano":
        rolled = random_configs.roll(kind, seed)
        return rolled.model, torch.tensor(rolled.ids)
    dice = Random(seed)
    heads, half = dice.randint(1, 5), dice.randint(1, 6)
    sizes: dict[str, int] = {"d_model": 2 * heads * half, "n_heads": heads, "d_ff": dice.randint(1, 40)}
    sizes |= {"context": dice.randint(7, 12), "n_layers": dice.randint(1, 4)}
    design = {"norm": "rmsnorm", "ffn": "swiglu", "position": "rope", "tie_embeddings": False}
    config: ModelConfig = tiny(**design, **sizes, rope_theta=dice.choice((100.0, 10_000.0)))
    generator = torch.Generator().manual_seed(seed)
    return loud(config), torch.randint(config.vocab_size, (config.context,), generator=generator)


@for_each(
    "kind, seed",
    [(kind, seed) for seed in range(8) for kind in COVERED],
    fast=[(kind, 0) for kind in COVERED],
)
@torch.no_grad()
def test_all_five_give_the_same_logits(kind: str, seed: int, tmp_path: Path) -> None:
    model, ids = drawn(kind, seed)
    expected = model(ids[None])[0]
    found = {"nano": by_nano(model, ids), "fast": by_rows(model, ids), "second": by_papers(model, ids)}
    found["exported"] = by_file(model, ids, tmp_path)
    logits = {name: each for name, each in found.items() if each is not None}
    assert logits.keys() == COVERED[kind]
    scale = float(expected.abs().max())
    far = {name: float((each - expected).abs().max()) / scale for name, each in logits.items()}
    assert max(far.values()) < 2e-5, far


def test_what_is_compared_depends_on_every_weight() -> None:
    model, ids = drawn("nano", 1)
    with torch.no_grad():
        before, seen = model(ids[None])[0].clone(), Counter[bool]()
        for p in model.parameters():
            p.data.view(-1)[0] += 0.5
            seen[bool((model(ids[None])[0] - before).abs().max() > 2e-5 * before.abs().max())] += 1
            p.data.view(-1)[0] -= 0.5
    assert seen == {True: len(list(model.parameters()))}
