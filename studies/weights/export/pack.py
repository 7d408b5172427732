"""Exported models as files: what is in them, how large they become, and their bytes."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save, save_file
from torch import Tensor, nn

from engine.data.tokenizers import Tokenizer
from engine.errors import PretrainedError, TokenizerError
from engine.model import Transformer
from studies.weights.export.hugging_face import Plan, plan, tensors
from studies.weights.export.tokenizer_json import settings_json, tokenizer_json

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
STORED = 32 * 2**20  # bytes of weights from which on compressing costs more time than it saves room


@dataclass(frozen=True)
class Size:
    """Bytes of a model's numbers, before a file's frame."""

    bytes: int

    @property
    def megabytes(self) -> str:
        return f"{self.bytes / 1e6:,.1f} MB"

    def allow(self, most: int) -> None:
        if self.bytes > most:
            raise PretrainedError(
                f"its weights would take {self.megabytes}, and this server exports at most"
                f" {most / 1e6:,.0f} MB. Choose fewer bits, or export it from a copy of the app on your own"
                " machine"
            )


def size(model: nn.Module, dtype: str) -> Size:
    """Returns how large the weights become in a dtype of DTYPES."""
    return Size(sum(p.numel() for p in model.parameters()) * DTYPES[dtype].itemsize)


def hugging_face(model: Transformer, plan: Plan, tokenizer: Tokenizer, dtype: str) -> bytes:
    """Returns a zip, made on disk: weights, config.json, and tokenizer.json where it can be said."""
    # A family's own marks of beginning and end would name other tokens of this vocabulary.
    facts = dict(plan.facts) | {"dtype": dtype, "bos_token_id": None, "eos_token_id": None}
    texts = {"config.json": json.dumps(facts, indent=2) + "\n"}
    try:
        texts["tokenizer.json"] = tokenizer_json(tokenizer, model.config.vocab_size)
        texts["tokenizer_config.json"] = settings_json(tokenizer)
    except TokenizerError:
        pass  # `tokenizer_note` says so
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "model.safetensors"
        save_file(tensors(model, plan, DTYPES[dtype]), file, metadata={"format": "pt"})
        how = zipfile.ZIP_STORED if file.stat().st_size > STORED else zipfile.ZIP_DEFLATED
        whole = Path(place) / "model.zip"
        with zipfile.ZipFile(whole, "w", how) as archive:
            archive.write(file, file.name)
            for name, text in texts.items():
                archive.writestr(name, text)
        return whole.read_bytes()


def save_hugging_face(
    folder: Path | str, model: Transformer, tokenizer: Tokenizer, dtype: str = "float32"
) -> Path:
    """Writes a model as a folder that `transformers` opens (AutoModelForCausalLM.from_pretrained), and
    returns it. Raises PretrainedError where no architecture there has the same parts.
    """
    folder = Path(folder)
    with zipfile.ZipFile(io.BytesIO(hugging_face(model, plan(model), tokenizer, dtype))) as archive:
        archive.extractall(folder)
    return folder


def tokenizer_note(model: Transformer, tokenizer: Tokenizer) -> str | None:
    """Returns why there is no tokenizer.json; None where there is one."""
    try:
        tokenizer_json(tokenizer, model.config.vocab_size)
    except TokenizerError as error:
        return str(error)
    return None


def engine_weights(model: nn.Module, dtype: str) -> bytes:
    """Returns model.safetensors under the engine's names, for the single-file export."""
    held: dict[str, Tensor] = {
        name: p.detach().to(DTYPES[dtype]).contiguous() for name, p in model.named_parameters()
    }
    return save(held, metadata={"format": "pt"})
