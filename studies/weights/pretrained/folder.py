"""A folder in Hugging Face's layout: config.json, tokenizer.json, safetensors. Never a pickle."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import takewhile
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open

from engine.errors import PretrainedError
from engine.safetensors_header import MAX_DIMENSIONS
from studies.weights.pretrained.vocabulary import PretrainedTokenizer, from_json

CONFIG, TOKENIZER = "config.json", "tokenizer.json"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
SETTINGS, NAMES, TEMPLATE = "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"
MAX_JSON_BYTES = 64 * 2**20  # of a tokenizer with a large vocabulary
PREFIXES = ("transformer.", "model.", "gpt_neox.", "bert.")  # of the body, where a head is saved with it
QUANTISED = (
    "quantization_config",
    "quantization",
    "compression_config",
)  # of config.json: MLX has the second
WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")  # what PyTorch puts between
ADAPTER, ADAPTED = "adapter_config.json", "base_model.model."  # PEFT's file, and what its names begin with
# parts of names that PEFT's adapters have, and quantised matrices
CHANGES = ("lora_", "ia3_", "hada_", "lokr_", "oft_", "vera_", "base_layer", "prompt_embeddings")
PACKED = (
    "qweight", "qzeros", "absmax", "quant_map", "SCB", "weight_packed", "weight_scale", "weight_scale_inv",
    "scales", "W_q",
)  # fmt: skip
ROWS = 1024  # that are compared at a time: all of a large matrix would take its memory twice
POINTER = b"version https://git-lfs"


@dataclass(frozen=True, eq=False)
class Folder:
    """Facts of a model, and where its tensors lie: name without PREFIXES -> (file, name there)."""

    path: Path
    facts: Mapping[str, Any] = field(repr=False)
    where: Mapping[str, tuple[Path, str]] = field(repr=False)
    shapes: Mapping[str, tuple[int, ...]] = field(repr=False)

    @property
    def title(self) -> str:
        return self.path.name

    @property
    def bits(self) -> float:
        """Bits that one number takes on disk, on average; the tables of names are counted in."""
        files = {file for file, _ in self.where.values()}
        return 8 * sum(file.stat().st_size for file in files) / max(1, sum(map(prod, self.shapes.values())))

    def numbers(self, name: str) -> np.ndarray:
        """Returns a tensor as float32. Raises PretrainedError if it cannot be, or is not finite."""
        file, called = self.where[name]
        try:
            with safe_open(file, framework="pt") as opened:
                result = opened.get_tensor(called)
        except (OSError, SafetensorError) as error:
            raise PretrainedError(f"{self.title}: {file.name} cannot be read: {error}") from error
        if not result.is_floating_point():
            raise PretrainedError(f"{self.title}: {name} holds {result.dtype}, not floating-point numbers")
        result = result.to(torch.float32)
        if not bool(torch.isfinite(result).all()):
            raise PretrainedError(f"{self.title}: {name} holds numbers that are not finite")
        return result.numpy()

    def same(self, name: str, other: str) -> bool:
        """True if two tensors hold the same numbers. Raises PretrainedError where one cannot be read."""
        if self.shapes[name] != self.shapes[other]:
            return False
        try:
            with ExitStack() as stack:
                a, b = (
                    stack.enter_context(safe_open(file, framework="pt")).get_slice(called)
                    for file, called in (self.where[name], self.where[other])
                )
                rows = self.shapes[name][0] if self.shapes[name] else 0
                return all(
                    torch.equal(a[at : at + ROWS].float(), b[at : at + ROWS].float())
                    for at in range(0, rows, ROWS)
                )
        except (OSError, SafetensorError) as error:
            raise PretrainedError(f"{self.title} cannot be read: {error}") from error


def read(path: Path | str) -> Folder:
    """Reads facts and the table of tensors. Raises PretrainedError that names the file at fault."""
    path = Path(path)
    if (path / ADAPTER).is_file() and not (path / WEIGHTS).is_file() and not (path / INDEX).is_file():
        base = read_json(path / ADAPTER).get("base_model_name_or_path")
        raise _adapter(path.name, f"{ADAPTER} says that its base is {base!r}")
    facts = read_json(path / CONFIG)
    _refuse_quantised(path, facts)
    tables = {file: dict(_table(file, wanted, path.name)) for file, wanted in _files(path).items()}
    names = [name for table in tables.values() for name in table]
    _refuse_parts(path.name, names)
    shared = _shared_prefix(names)
    where: dict[str, tuple[Path, str]] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for file, table in tables.items():
        for name, shape in table.items():
            short = _short(name, shared)
            if short in where:
                raise PretrainedError(f"{path.name}: {short} is there twice")
            where[short], shapes[short] = (file, name), shape
    return Folder(path, facts, where, shapes)


def _refuse_quantised(path: Path, facts: Mapping[str, Any]) -> None:
    """Raises PretrainedError where a file of settings says that the weights are quantised."""
    said = {CONFIG: next((facts[name] for name in QUANTISED if facts.get(name)), None)}
    for name in ("quantize_config.json", "quant_config.json"):  # beside config.json, of older files
        said[name] = read_json(path / name) if (path / name).is_file() else None
    for file, how in said.items():
        if how is None:
            continue
        facts = how if isinstance(how, Mapping) else {}
        four, eight = facts.get("load_in_4bit"), facts.get("load_in_8bit")
        bits = facts.get("bits", facts.get("w_bit", 4 if four else 8 if eight else None))
        method = facts.get("quant_method", "MLX" if "group_size" in facts else None)
        told = "".join(
            f" {word}" for word in (f"with {method}" * bool(method), f"to {bits} bits" * bool(bits)) if word
        )
        raise PretrainedError(
            f"{path.name}: its weights are quantised{told}, as {file} says; only plain ones are read from"
            " safetensors. Save it without quantisation, or open it as a GGUF file"
        )


def _refuse_parts(title: str, names: Sequence[str]) -> None:
    """Raises PretrainedError for tensors that are an adapter's, or quantised, whatever the files say."""
    parts = [(name, part) for name in names for part in name.split(".")]
    if adapted := next((name for name in names if name.startswith(ADAPTED)), None):
        raise _adapter(title, f"it holds {adapted}")
    if changed := next((name for name, part in parts if part.startswith(CHANGES)), None):
        raise _adapter(title, f"it holds {changed}")
    if packed := next((name for name, part in parts if part in PACKED), None):
        raise PretrainedError(
            f"{title}: its weights are quantised (it holds {packed}); only plain ones are read from"
            " safetensors"
        )


def _adapter(title: str, why: str) -> PretrainedError:
    return PretrainedError(
        f"{title} is an adapter without its base model: {why}. Merge it into its base, and save the whole"
    )


def _shared_prefix(names: Sequence[str]) -> str:
    """Returns the beginning that all names share, up to a dot: the model was a part of another.

    >>> _shared_prefix(["net.model.norm.weight", "net.head.weight"]), _shared_prefix(["ln.bias", "wte.bias"])
    ('net.', '')
    """
    parts = zip(*(_unwrapped(name).split(".")[:-1] for name in names), strict=False)
    begin = takewhile(lambda each: len(set(each)) == 1, parts)
    return "".join(f"{first}." for first, *_ in begin) if len(names) > 1 else ""


def _unwrapped(name: str) -> str:
    return ".".join(part for part in name.split(".") if part not in WRAPPERS).removeprefix("module.")


def _short(name: str, shared: str) -> str:
    """A tensor's name without its model's; gains and biases of old files are called as in new ones."""
    plain = _unwrapped(name).removeprefix(shared)
    short = next((plain.removeprefix(p) for p in PREFIXES if plain.startswith(p)), plain)
    return short.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def vocabulary_of(folder: Folder) -> PretrainedTokenizer:
    """Returns the vocabulary with its chat template, where there is one. Raises PretrainedError."""
    text = _text(folder.path / TOKENIZER)
    values: dict[str, Any] = {}
    for file in (
        folder.path / NAMES,
        folder.path / SETTINGS,
    ):  # where both say something, the later one counts
        values |= read_json(file) if file.is_file() else {}
    own = folder.path / TEMPLATE
    template = _text(own) if own.is_file() else _template(values.get("chat_template"))
    names = {role: _name(token) for role, token in values.items() if role.endswith("_token")}
    return from_json(text, template, {role: name for role, name in names.items() if name})


def _template(value: object) -> str | None:
    """The chat template of settings: a text, or the one called "default" of several."""
    if isinstance(value, list):
        value = {each.get("name"): each.get("template") for each in value if isinstance(each, Mapping)}
    if isinstance(value, Mapping):
        value = value.get("default")
    return value if isinstance(value, str) else None


def _text(file: Path) -> str:
    """A file's text; a byte order mark before it says nothing."""
    try:
        if file.stat().st_size > MAX_JSON_BYTES:
            raise PretrainedError(f"{file.name} is larger than {MAX_JSON_BYTES >> 20} MB")
        data = file.read_bytes()
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise PretrainedError(f"{file.name} cannot be read: it is written in UTF-16; save it as UTF-8")
        if data.startswith(POINTER):
            raise _pointer(file)
        return data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise PretrainedError(f"{file.name} cannot be read: {why or error}") from error


def _pointer(file: Path) -> PretrainedError:
    return PretrainedError(
        f"{file.name} is a pointer of Git LFS, and not the file itself: fetch it with `git lfs pull`"
    )


def _name(token: object) -> str:
    """A special token's, which old files keep in an object of its own."""
    text = token.get("content") if isinstance(token, Mapping) else token
    return text if isinstance(text, str) else ""


def read_json(path: Path) -> dict[str, Any]:
    """Returns a JSON object from a file of a bounded size. Raises PretrainedError."""
    text = _text(path)
    try:
        result = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PretrainedError(f"{path.name} is not valid JSON") from error
    if not isinstance(result, dict):
        raise PretrainedError(f"{path.name} holds no JSON object")
    return result


def _files(path: Path) -> dict[Path, set[str] | None]:
    """Each file of tensors, with the names that the index promises in it; None for a single file."""
    if (path / WEIGHTS).is_file():
        return {path / WEIGHTS: None}
    if not (path / INDEX).is_file():
        pickles = sorted(file.name for file in path.glob("*.bin")) + sorted(
            file.name for file in path.glob("*.pt*")
        )
        has = f", and {pickles[0]}, a pickle, is not opened" if pickles else ""
        raise PretrainedError(
            f"{path.name} has neither {WEIGHTS} nor {INDEX}: only safetensors are read{has}"
        )
    listed = read_json(path / INDEX).get("weight_map")
    if not isinstance(listed, dict) or not listed:
        raise PretrainedError(f"{path.name}: {INDEX} has no weight_map")
    result: dict[Path, set[str] | None] = {}
    for name, file in listed.items():
        if not isinstance(file, str) or Path(file).name != file:
            raise PretrainedError(f"{path.name}: {INDEX} names a file outside of the folder")
        held = result.setdefault(path / file, set())
        assert held is not None
        held.add(name)
    return result


def _table(file: Path, wanted: set[str] | None, title: str) -> Iterable[tuple[str, tuple[int, ...]]]:
    try:
        with file.open("rb") as data:
            if data.read(len(POINTER)) == POINTER:
                raise _pointer(file)
        with safe_open(file, framework="pt") as opened:
            names = set(opened.keys())
            result = [(name, tuple(opened.get_slice(name).get_shape())) for name in sorted(names)]
    except FileNotFoundError as error:
        raise PretrainedError(f"{title} lacks {file.name}, which {INDEX} names") from error
    except (OSError, SafetensorError) as error:
        raise PretrainedError(f"{title}: {file.name} cannot be read: {error}") from error
    if any(len(shape) > MAX_DIMENSIONS for _, shape in result):
        raise PretrainedError(f"{title}: {file.name} has a tensor with more than {MAX_DIMENSIONS} dimensions")
    if wanted is not None and names != wanted:
        odd = sorted(names ^ wanted)[0]
        raise PretrainedError(f"{title}: {file.name} and {INDEX} disagree about {odd}")
    return result
