"""A fine-tuned model's adapters for the library PEFT: adapter_config.json, adapter_model.safetensors."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Protocol

import torch
from safetensors.torch import save
from torch import Tensor

from engine.errors import PretrainedError
from engine.model import Transformer
from engine.parts.parameters import StackedLinear
from studies.weights.export.hugging_face import plan, undone
from studies.weights.pretrained.families import HUGGING_FACE

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")  # whose matrices lie as nn.Linear's do
PREFIX = "base_model.model."


class LowRank(Protocol):
    """A change of a matrix: `up` (out, rank) @ `down` (rank, in)."""

    @property
    def up(self) -> Tensor: ...
    @property
    def down(self) -> Tensor: ...


@torch.no_grad()
def adapter_tensors(model: Transformer, adapters: Mapping[str, LowRank]) -> dict[str, Tensor]:
    """Returns PEFT's names -> tensors: of a matrix that holds several (queries, keys and values), one adapter
    for each, with the same `down`. Raises PretrainedError for a family that is not among FAMILIES.
    """
    planned = plan(model)
    if planned.family not in FAMILIES:
        raise PretrainedError(
            f"adapters are written for {', '.join(FAMILIES)}, and this model is {planned.family}"
        )
    pieces, result = HUGGING_FACE[planned.family].pieces(planned.config), {}
    for name, adapter in adapters.items():
        owner = model.get_submodule(name.rpartition(".")[0])
        rows = list(owner.row_blocks) if isinstance(owner, StackedLinear) else [len(adapter.up)]
        for (theirs, change), up in zip(pieces[name].parts, adapter.up.split(rows), strict=True):
            place = PREFIX + planned.writer.full(theirs).removesuffix(".weight")
            result[f"{place}.lora_A.weight"] = adapter.down.detach().float().clone()
            result[f"{place}.lora_B.weight"] = undone(up.detach(), change).float().contiguous()
    return result


def peft(model: Transformer, adapters: Mapping[str, LowRank], base: str) -> bytes:
    """Returns a zip that `peft.PeftModel` opens over the model `base`. Raises as `adapter_tensors`."""
    tensors = adapter_tensors(model, adapters)
    rank = next(iter(adapters.values())).down.shape[0]
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": rank,
        "lora_alpha": rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "target_modules": sorted({name.split(".")[-3] for name in tensors}),
    }
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("adapter_config.json", json.dumps(config, indent=2) + "\n")
        archive.writestr("adapter_model.safetensors", save(tensors, metadata={"format": "pt"}))
    return result.getvalue()
