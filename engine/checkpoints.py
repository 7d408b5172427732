"""Models and training states on disk: safetensors and JSON, read strictly, never pickled.

A checkpoint is a folder (or a zip of it): model.safetensors, config.json, tokenizer.json, metrics.json.
A snapshot of a training is one safetensors file with its JSON in the header.
"""

from __future__ import annotations

import io
import json
import os
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from engine import safetensors_header
from engine.config import ModelConfig, ResolvedConfig
from engine.data.tokenizers import Storable
from engine.data.tokenizers.stored import tokenizer_from_dict
from engine.errors import CheckpointError, GlassformerError, without_paths
from engine.model import Transformer, build
from engine.parts.registry import HEALTHY, PARTS, Parts, parts_of
from engine.training.records import TrainState

WEIGHTS, CONFIG, TOKENIZER, METRICS = "model.safetensors", "config.json", "tokenizer.json", "metrics.json"
FILES = (WEIGHTS, CONFIG, TOKENIZER, METRICS)
MAX_ZIP_BYTES = 512 * 2**20  # unpacked; a zip can claim any size
MAX_JSON_BYTES = 4 * 2**20  # a vocabulary of 65,536 tokens takes half of it
MAX_LAYERS = 1024  # a block of nothing has no tensors, so their number does not bound this one


@dataclass(frozen=True)
class Checkpoint:
    """A trained model with all that using it needs; `metrics` say how it was trained and what it reached."""

    model: Transformer
    config: ResolvedConfig
    tokenizer: Storable
    metrics: dict[str, Any]

    def memory(self) -> int:
        """Estimates its bytes: weights, and 24 for each of JSON, whose `{},` takes that much memory."""
        written = sum(len(json.dumps(values)) for values in (self.tokenizer.to_dict(), self.metrics))
        return sum(p.nbytes for p in self.model.parameters()) + 24 * written


class Model(Protocol):
    """A Transformer, or another model with a configuration and parts."""

    config: Any
    parts: Parts

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]: ...


def save(
    folder: Path | str,
    model: Model,
    tokenizer: Storable,
    metrics: Mapping[str, Any],
    dtype: torch.dtype = torch.float32,
    config: Mapping[str, Any] | None = None,
) -> None:
    """Writes the four files of a model, each whole or not at all; weights are stored in `dtype`. `config` is
    written where the model's own does not say all.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in _files(model, tokenizer, metrics, dtype, config).items():
        write_whole(folder / name, data)


def load(folder: Path | str) -> Checkpoint:
    """Reads a folder into a float32 model on the CPU, in evaluation mode. Raises CheckpointError when a file
    is missing, cut short or edited, when tensors do not fit the config, and for another kind of model.
    """
    folder = Path(folder)
    files = {name: read(folder / name) for name in FILES}
    return _assemble(files, *architecture(files[CONFIG], folder.name), folder.name)


def read(path: Path) -> bytes:
    """Returns a whole file. Raises CheckpointError naming it when it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(
            f"{path.name} cannot be read: {error.strerror or type(error).__name__}"
        ) from error


def pack(
    model: Model, tokenizer: Storable, metrics: Mapping[str, Any], config: Mapping[str, Any] | None = None
) -> bytes:
    """Returns the same four files as one zip, for a download; weights in float32."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in _files(model, tokenizer, metrics, torch.float32, config).items():
            archive.writestr(name, data)
    return buffer.getvalue()


def unpack(data: bytes, allow: Callable[[ModelConfig, Parts], None] | None = None) -> Checkpoint:
    """Returns the inverse of `pack`, for an upload; nothing is written to disk. `allow` is shown
    configuration and parts before anything large is read, and raises ConfigError. Raises CheckpointError as
    `load`.
    """
    where = "the uploaded model"
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = _entries(archive)
            config_file = _read_entry(archive, entries[CONFIG], MAX_JSON_BYTES)
            config, parts = architecture(config_file, where, allow)
            most = {WEIGHTS: safetensors_header.most_bytes(_numbers(_blank(config, parts, where)))}
            files = {
                name: _read_entry(archive, info, most.get(name, MAX_JSON_BYTES))
                for name, info in entries.items()
            }
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        EOFError,
        OSError,
        RuntimeError,
        ValueError,
    ) as error:
        raise CheckpointError(f"this is not a readable zip file: {error}") from error
    return _assemble(files, config, parts, where)


def _entries(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The four files of a checkpoint in a zip, none of them read yet. Made again from the unpacked folder, a
    zip has them within that folder, and macOS puts a folder of its own beside.
    """
    infos = {info.filename.replace("\\", "/"): info for info in archive.infolist()}
    places = [name.removesuffix(CONFIG) for name in infos if PurePosixPath(name).name == CONFIG]
    if len(places := [place for place in places if not place.startswith("__MACOSX/")]) > 1:
        raise CheckpointError(f"the zip holds {len(places)} models; one at a time is opened")
    before = "".join(places)
    entries = {name.removeprefix(before): info for name, info in infos.items() if name.startswith(before)}
    if missing := [name for name in FILES if name not in entries]:
        raise CheckpointError(
            f"the zip lacks {', '.join(missing)}: it is not a model downloaded from this app"
        )
    wanted = {name: entries[name] for name in FILES}
    if any(info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in wanted.values()):
        raise CheckpointError("the zip is compressed in an unusual way; store or deflate its files")
    if sum(info.file_size for info in wanted.values()) > MAX_ZIP_BYTES:
        raise CheckpointError(f"the zip unpacks to more than {MAX_ZIP_BYTES >> 20} MB")
    return wanted


def _read_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo, most: int) -> bytes:
    if info.file_size > most:
        raise CheckpointError(
            f"{info.filename} in the zip has {info.file_size:,} bytes; at most {most:,} are read"
        )
    with archive.open(info) as member:  # read at most what was declared: the declared size may be a lie
        data = member.read(info.file_size + 1)
    if len(data) != info.file_size:
        raise CheckpointError(f"{info.filename} in the zip is not as long as the zip says")
    return data


def save_state(path: Path | str, state: TrainState, meta: Mapping[str, Any]) -> int:
    """Writes a state and JSON-able `meta` as one file, whole or not at all. Returns its bytes."""
    header = {"glassformer": json.dumps({"step": state.step, "seconds": state.seconds, "meta": dict(meta)})}
    data = save_tensors({name: t.contiguous() for name, t in state.tensors.items()}, metadata=header)
    write_whole(Path(path), data)
    return len(data)


def load_state(path: Path | str) -> tuple[TrainState, dict[str, Any]]:
    """Returns the inverse of `save_state`. Raises CheckpointError where it is no whole snapshot."""
    with _snapshot(path) as (file, header):
        names = file.keys()  # of a file, which is no dict
        tensors = {name: file.get_tensor(name) for name in names}
        return TrainState(int(header["step"]), float(header["seconds"]), tensors), dict(header["meta"])


def load_weights(path: Path | str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Returns a snapshot's parameters by name (float32) and its `meta`. Raises as `load_state`."""
    with _snapshot(path) as (file, header):
        names = [name for name in list(file.keys()) if name.startswith("model.")]
        parameters = {name.removeprefix("model."): file.get_tensor(name) for name in names}
        return parameters, dict(header["meta"])


@contextmanager
def _snapshot(path: Path | str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """(the open file, what stands in its header). Any failure while it is read becomes a CheckpointError."""
    try:
        with safe_open(str(path), framework="pt") as file:
            yield file, json.loads((file.metadata() or {})["glassformer"])
    # RuntimeError: it went while it was being opened
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
        why = without_paths(str(error))
        raise CheckpointError(f"{Path(path).name} is not a whole snapshot: {why}") from error


def slim_state(path: Path | str) -> int:
    """Rewrites a snapshot without the optimiser's state, to be looked into only. Returns its bytes. Raises
    CheckpointError when it is not whole, OSError when it cannot be written.
    """
    state, meta = load_state(path)
    weights = {f"model.{name}": t for name, t in state.weights().items()}
    return save_state(path, TrainState(state.step, state.seconds, weights), meta)


def write_whole(path: Path, data: bytes) -> None:
    """Writes beside and renames: a reader sees the old file or the new one. Leaves nothing if it fails."""
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(beside, 0o644)
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def _files(
    model: Model,
    tokenizer: Storable,
    metrics: Mapping[str, Any],
    dtype: torch.dtype,
    config: Mapping[str, Any] | None,
) -> dict[str, bytes]:
    described = model.config.to_dict() if config is None else dict(config)
    return {
        WEIGHTS: stored(dict(model.named_parameters()), dtype),
        CONFIG: json_bytes(described | _made_of(model.parts)),
        TOKENIZER: json_bytes(tokenizer.to_dict()),
        METRICS: json_bytes(dict(metrics)),
    }


def stored(tensors: Mapping[str, Tensor], dtype: torch.dtype) -> bytes:
    return save_tensors({name: p.detach().cpu().to(dtype).contiguous() for name, p in tensors.items()})


def _made_of(parts: Parts) -> dict[str, str]:
    """Returns the config entry of unhealthy parts. Raises CheckpointError for parts without a name."""
    if PARTS.get(parts.name) is not parts:
        raise CheckpointError(
            f"a model made of {parts.name!r} cannot be saved: nobody could load it. Enter its parts in"
            " engine.parts.registry.PARTS"
        )
    return {} if parts is HEALTHY else {"parts": parts.name}


def json_bytes(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


def architecture(
    data: bytes, where: str, allow: Callable[[ModelConfig, Parts], None] | None = None
) -> tuple[ModelConfig, Parts]:
    """Reads config and parts. Raises CheckpointError if they cannot be built or are not allowed."""
    values = json_object(data, CONFIG, where)
    try:
        parts = parts_of(str(values.pop("parts", HEALTHY.name)))
        config = ModelConfig.from_dict(values).validate()
        if allow is not None:
            allow(config, parts)
    except (GlassformerError, TypeError) as error:
        raise CheckpointError(f"{where}: {error}") from error
    check_sizes(where, None, config)
    return config, parts


def _assemble(files: Mapping[str, bytes], config: ModelConfig, parts: Parts, where: str) -> Checkpoint:
    metrics = json_object(files[METRICS], METRICS, where)
    tokenizer = tokenizer_for(config, files[TOKENIZER], where)
    model = model_from(files[WEIGHTS], config, parts, where)
    return Checkpoint(model, model.config, tokenizer, metrics)


def tokenizer_for(config: ModelConfig, data: bytes, where: str) -> Storable:
    """Reads a model's tokenizer. Raises CheckpointError if it is invalid or does not fit."""
    try:
        tokenizer = tokenizer_from_dict(json_object(data, TOKENIZER, where))
    except (GlassformerError, TypeError) as error:
        raise CheckpointError(f"{where}: {error}") from error
    check_sizes(where, tokenizer, config)
    return tokenizer


def check_sizes(where: str, tokenizer: Storable | None, config: ModelConfig, spare: int = 1) -> None:
    """Raises CheckpointError for too many layers, or a vocabulary that is not the tokenizer's. It may have
    `spare` ids more, such as an encoder's mask.
    """
    if config.n_layers > MAX_LAYERS:
        raise CheckpointError(f"{where}: n_layers = {config.n_layers:,}, but at most {MAX_LAYERS:,} are read")
    if tokenizer is not None and not 0 <= config.vocab_size - tokenizer.vocab_size <= spare:
        raise CheckpointError(
            f"{where}: the config has vocab_size {config.vocab_size}, but the tokenizer knows"
            f" {tokenizer.vocab_size} tokens"
        )


def model_from(
    data: bytes, config: ModelConfig, parts: Parts, where: str, name: str = WEIGHTS
) -> Transformer:
    """Reads a model's weights from a safetensors file. Raises CheckpointError if they do not fit."""
    # The tensors bound the model's size: a config that asks for more is refused before a tensor is made.
    model = _blank(config, parts, where)
    wanted = _numbers(model)
    try:
        held = safetensors_header.numbers(data)
        tensors = load_tensors(data) if held == wanted else {}
    except (CheckpointError, SafetensorError, ValueError, KeyError) as error:
        raise CheckpointError(f"{where}: {name} is damaged or cut short ({error})") from error
    if held != wanted:
        raise CheckpointError(f"{where}: {name} holds {held:,} numbers, but the config calls for {wanted:,}")
    return _ready(model, tensors, where)


def _blank(config: ModelConfig, parts: Parts, where: str) -> Transformer:
    """Builds a model that takes no memory. Raises CheckpointError where a tensor has more bytes than can be
    counted.
    """
    try:
        return build(config, device="meta", parts=parts)
    except RuntimeError as error:
        raise CheckpointError(f"{where}: the config calls for too large a model") from error


def model_with(
    config: ModelConfig, tensors: Mapping[str, Tensor], where: str = "these weights", parts: Parts = HEALTHY
) -> Transformer:
    """Returns a float32 model in evaluation mode with these parameters, by name, or with those of a training
    (`TrainState.tensors`). Raises as `filled`.
    """
    if any(name.startswith("model.") for name in tensors):
        tensors = TrainState(0, 0.0, dict(tensors)).weights()
    return _ready(_blank(config, parts, where), tensors, where)


def _numbers(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def _ready(model: Transformer, tensors: Mapping[str, Tensor], where: str) -> Transformer:
    filled(model, tensors, where)
    model.parts.mode(model, False)
    return model.requires_grad_(False)


def filled(model: nn.Module, tensors: Mapping[str, Tensor], where: str) -> None:
    """Gives a meta model its parameters in float32. Raises CheckpointError naming the first that is wrong."""
    wanted = {name: p.shape for name, p in model.named_parameters()}
    for name in sorted(wanted.keys() ^ tensors.keys()):
        raise CheckpointError(
            f"{where}: the tensor {name!r} is"
            f" {'missing' if name in wanted else 'not part of this architecture'}"
        )
    for name, shape in wanted.items():
        tensor = tensors[name]
        if tensor.shape != shape or not tensor.is_floating_point():
            raise CheckpointError(
                f"{where}: {name!r} is {tensor.dtype} of shape {tuple(tensor.shape)}, but the config calls"
                f" for {tuple(shape)}"
            )
        if not torch.isfinite(tensor).all():
            raise CheckpointError(f"{where}: {name!r} holds values that are not finite numbers")
    model.load_state_dict({name: t.float() for name, t in tensors.items()}, assign=True)


def json_object(data: bytes, name: str, where: str) -> dict[str, Any]:
    """Reads a JSON object from a file. Raises CheckpointError for anything else."""
    if len(data) > MAX_JSON_BYTES:
        raise CheckpointError(f"{where}: {name} is larger than {MAX_JSON_BYTES >> 20} MB")
    try:
        value = json.loads(data.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{where}: {name} is not JSON ({error})") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{where}: {name} must hold a JSON object")
    return value
