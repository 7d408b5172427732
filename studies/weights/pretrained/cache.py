"""Weights that were dequantised once are kept as float32 safetensors, and mapped into memory from then on."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from filelock import FileLock
from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.errors import PretrainedError

if TYPE_CHECKING:
    from studies.weights.pretrained.load import OpenedFile

ENTRY = 200  # bytes for the type, shape and place of one tensor, in a header
FORM = 1  # of what is kept: another number makes every kept file a stranger's


def folder() -> Path:
    """Returns where kept weights lie: `glassformer/models` in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "glassformer" / "models"


def stamp(opened: OpenedFile[Any, Any], path: Path) -> str:
    """Names the file, its state and the configuration: another one gets another name. Fields that say nothing
    new are left out, so that a field that is added later makes no kept file a stranger's.
    """
    files = sorted(path.rglob("*.safetensors")) if path.is_dir() else [path]
    state = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    facts = json.dumps([FORM, str(path.resolve()), state, opened.differs])
    return hashlib.sha256(facts.encode()).hexdigest()[:20]


def weights(opened: OpenedFile[Any, Any], path: Path, keep: Path | None = None) -> dict[str, Tensor]:
    """Returns a model's tensors, mapped from `keep` (the user's cache if None), put there first if need be:
    whole, and once, whatever other processes do; made anew where nothing can be written. Raises as
    `Opened.weights`.
    """
    keep = folder() if keep is None else keep
    kept = keep / f"{stamp(opened, path)}.safetensors"
    if (result := _mapped(kept, opened)) is not None:
        return result
    try:
        keep.mkdir(parents=True, exist_ok=True)
        with FileLock(kept.with_suffix(".lock")):
            if (result := _mapped(kept, opened)) is None:
                _write(opened, kept)
        return _mapped(kept, opened) or opened.weights()
    except OSError:
        return opened.weights()


def _write(opened: OpenedFile[Any, Any], path: Path) -> None:
    """Called by who holds the lock: another half of the same file is that of a process which was killed."""
    for left in path.parent.glob(f"{path.stem}.*.half"):
        left.unlink(missing_ok=True)
    half = path.with_suffix(f".{os.getpid()}.half")
    try:
        with half.open("wb") as file:
            _store(opened, file)
        os.replace(half, path)
    finally:
        half.unlink(missing_ok=True)


def _store(opened: OpenedFile[Any, Any], file: BinaryIO) -> None:
    """Safetensors, each tensor made and written before the next: SmolLM2's half a gigabyte is then never in
    memory as a whole, and is there in half the time.

    First the length of the header (8 bytes), then the header (JSON: type, shape and place of each, spaces
    behind it), then the numbers: https://huggingface.co/docs/safetensors#format. The header is written last,
    into room that was left for it.
    """
    room = sum(len(json.dumps(name)) + ENTRY for name in opened.names) // 8 * 8 + 8
    file.write(bytes(8 + room))
    header, at = {}, 0
    for name, tensor in opened.tensors():
        numbers = tensor.contiguous().numpy()
        offsets = [at, at + numbers.nbytes]
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": offsets}
        file.write(numbers.data)
        at += numbers.nbytes
    file.seek(0)
    file.write(struct.pack("<Q", room) + json.dumps(header, separators=(",", ":")).encode().ljust(room))


def _mapped(path: Path, opened: OpenedFile[Any, Any]) -> dict[str, Tensor] | None:
    """The tensors in a kept file; None where there is none, or it is not whole."""
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            names = file.keys()  # of a file, which is no dict
            result = {name: file.get_tensor(name) for name in names}
    except (OSError, SafetensorError):
        path.unlink(missing_ok=True)
        return None
    if result.keys() != opened.names:
        raise PretrainedError(f"{path.name} in the cache belongs to another model: remove it")
    return result
