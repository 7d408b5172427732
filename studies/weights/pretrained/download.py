"""A published model, fetched from Hugging Face when somebody asks for it, and held against its checksum."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.data.progress import Progress, Steps
from engine.errors import PretrainedError
from studies.weights.pretrained.sources import KNOWN

NEEDED = ("config.json", "tokenizer.json", "model.safetensors")
WELCOME = (
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "generation_config.json",
)
SECONDS = 10.0  # to wait for the hub's first answer
CHUNK = 4 << 20


@dataclass(frozen=True)
class Wanted:
    """A file of a repository. `sha256` is what the hub says of a large one, None for a small one."""

    name: str
    size: int
    sha256: str | None


def download(name: str, largest: int) -> Steps[Path]:
    """Returns a model's folder in the Hugging Face cache, where `sources.find` sees it; progress counts
    bytes. Raises PretrainedError for another name, no way to the hub, missing files, more than `largest`
    bytes, and a wrong checksum, whose file is removed.
    """
    if name not in KNOWN:
        raise PretrainedError(f"{name!r} is not a model that is fetched from here: {', '.join(KNOWN)}")
    repository = KNOWN[name].repository
    yield Progress(0, 0)
    with _readable_errors(repository):
        revision, files = _files(repository)
    total = sum(file.size for file in files)
    if total > largest:
        raise PretrainedError(f"{name} is {total >> 20:,} MB; here at most {largest >> 20:,} MB")
    before, folder = 0, Path()
    for file in files:
        fetch = _Fetch(repository, revision, file.name)
        try:
            while not fetch.ended.wait(0.2):
                yield Progress(before + min(fetch.bytes, file.size), total)
        finally:
            fetch.cancelled = True  # somebody left: the thread ends at its next piece
        with _readable_errors(repository):
            path = fetch.result()
        _check(path, file)
        folder, before = path.parent, before + file.size
        yield Progress(before, total)
    return folder


def _files(repository: str) -> tuple[str, list[Wanted]]:
    """The commit that the hub shows now, and the files of it that are needed."""
    from huggingface_hub import HfApi

    info = HfApi().model_info(repository, files_metadata=True, timeout=SECONDS)
    result = {}
    for each in info.siblings or ():
        if each.rfilename in NEEDED + WELCOME:
            checksum = each.lfs.sha256 if each.lfs else None
            result[each.rfilename] = Wanted(each.rfilename, each.size or 0, checksum)
    missing = [file for file in NEEDED if file not in result]
    if missing or not info.sha:
        raise PretrainedError(f"the repository {repository} has no {', '.join(missing)}")
    return info.sha, list(result.values())


class _Cancelled(Exception):
    """Somebody left."""


class _Fetch:
    """One file, fetched by huggingface_hub in a thread of its own, so that its bytes can be told."""

    def __init__(self, repository: str, revision: str, name: str) -> None:
        self.bytes, self.cancelled, self.ended = 0, False, threading.Event()
        self._path: str | None = None
        self._error: Exception | None = None
        threading.Thread(target=self._run, args=(repository, revision, name), daemon=True).start()

    def _run(self, repository: str, revision: str, name: str) -> None:
        from huggingface_hub import hf_hub_download

        try:
            self._path = hf_hub_download(
                repository, name, revision=revision, etag_timeout=SECONDS, tqdm_class=_counter(self)
            )
        except Exception as error:  # told by `result`
            self._error = error
        finally:
            self.ended.set()

    def result(self) -> Path:
        if self._error is not None:
            raise self._error
        assert self._path is not None
        return Path(self._path)


def _counter(fetch: _Fetch) -> Any:
    """A class for huggingface_hub's progress: it writes nothing to the terminal."""
    from tqdm.auto import tqdm  # type: ignore[import-untyped]

    class Counter(tqdm):
        def __init__(self, *args: Any, **rest: Any) -> None:
            rest.pop("name", None)
            super().__init__(*args, **{**rest, "disable": True})
            fetch.bytes = int(rest.get("initial") or 0)

        def update(self, n: float | None = 1) -> bool | None:
            if fetch.cancelled:
                raise _Cancelled
            fetch.bytes += int(n or 0)
            return None

    return Counter


def _check(path: Path, file: Wanted) -> None:
    """Raises PretrainedError, and removes the file, where it is not what the hub says."""
    if file.sha256 is None:
        return
    held = hashlib.sha256()
    with path.open("rb") as data:
        while piece := data.read(CHUNK):
            held.update(piece)
    if held.hexdigest() != file.sha256:
        path.resolve().unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        raise PretrainedError(f"{file.name} arrived damaged: its checksum differs from the hub's. Try again.")


@contextmanager
def _readable_errors(repository: str) -> Iterator[None]:
    """Turns errors of huggingface_hub and of the network into sentences."""
    try:
        yield
    except PretrainedError:
        raise
    except Exception as error:  # of huggingface_hub, its HTTP library and the system
        raise PretrainedError(
            f"{repository} could not be fetched from huggingface.co ({type(error).__name__}). Without a way"
            " to the internet, copy its folder (config.json, tokenizer.json, model.safetensors) to"
            " $GLASSFORMER_MODELS/<name> on this machine."
        ) from error
