"""A Ray actor that holds one worker process on a machine of a cluster, and carries its messages and files.

The worker itself is the same as everywhere (engine.service.worker), in a process of its own, so that what is
process-wide there (threads, allocator) is its own here too. Nothing of Ray's is imported: this is a plain
class, which engine.service.cluster makes an actor of.
"""

from __future__ import annotations

import queue
import shutil
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from engine.service.protocol import SnapshotSaved, Train, dump, load_command
from engine.service.transport import Pipe

PATIENCE = 1.0  # seconds that `hear` waits for something to be said
BUNDLE = 256  # messages in one answer at most


@dataclass(frozen=True)
class Output:
    """Messages of a worker since the last call, and its state."""

    lines: tuple[tuple[bytes, bytes | None], ...]  # a message, and the snapshot that it speaks of
    pid: int
    resident_bytes: int
    end: tuple[int, str] | None  # exit code and last words, once it is gone and has said everything


class Node:
    """One worker process and a folder for its files, both gone with it."""

    def __init__(self, threads: int) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="glassformer-node-"))
        self._pipe = Pipe(threads)
        self._said: queue.SimpleQueue[tuple[bytes, Path | None] | None] = queue.SimpleQueue()
        self._end: tuple[int, str] | None = None
        threading.Thread(target=self._listen, daemon=True).start()

    def tell(self, line: bytes, files: Mapping[str, bytes]) -> None:
        """Passes a command on. `files` holds what lies behind the paths that an order names."""
        entrant, command = load_command(line)
        if isinstance(command, Train):
            folder = self._folder / str(entrant)
            folder.mkdir(exist_ok=True)

            def here(path: str | None) -> str | None:
                if path is None:
                    return None
                (copy := folder / Path(path).name).write_bytes(files[path])
                return str(copy)

            command = replace(
                command, folder=str(folder), text=here(command.text), resume=here(command.resume)
            )
        if not self._pipe.send(command, entrant):
            self._pipe.kill()

    def hear(self) -> Output:
        """Returns the worker's messages; waits a moment for them."""
        lines: list[tuple[bytes, bytes | None]] = []
        over = self._end is not None and self._said.empty()
        while not over and len(lines) < BUNDLE:
            try:
                said = self._said.get(timeout=0 if lines else PATIENCE)
            except queue.Empty:
                break
            if said is None:
                over = True
            else:
                lines.append((said[0], _read(said[1])))
        return Output(tuple(lines), self._pipe.pid, self._pipe.resident_bytes(), self._end if over else None)

    def close(self) -> None:
        """Ends the worker's input."""
        self._pipe.close()

    def kill(self) -> None:
        """Ends the worker whatever it is doing."""
        self._pipe.kill()

    def _listen(self) -> None:
        for entrant, message in self._pipe.messages():
            path = Path(message.path) if isinstance(message, SnapshotSaved) else None
            self._said.put((dump(message, entrant), path))
        self._pipe.kill()
        self._end = self._pipe.wait(), self._pipe.last_words()
        self._said.put(None)
        self._pipe.release()

    def clear(self) -> None:
        """Removes the files."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _read(path: Path | None) -> bytes | None:
    """A snapshot, as long as it is there."""
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError:
        return None
