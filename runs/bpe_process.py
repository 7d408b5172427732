"""BPE learned in a process of its own: `python -m runs.bpe_process PARENT`; it ends with
PARENT.

Learning merges is Python from the first line to the last, and the Python of a server computes one thing at a
time: a megabyte learned there is a second in which nobody else's page is drawn, or many while others draw
theirs. It goes where there is another core; leaving it ends that process at once.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any, NoReturn

from engine.config import bpe_size
from engine.data.progress import Progress, Steps, finish
from engine.data.tokenizers import bpe
from engine.data.tokenizers.bpe import BpeTokenizer, Level, Split
from engine.errors import TokenizerError
from runs.process_guards import die_with, end_first, start_beside
from studies.tokens import bpe_watch, bpe_work
from studies.tokens.bpe_watch import RUNNERS_UP, Watched

SHORT = 20_000  # characters: learned here before a process has begun, which takes 0.2 s
BEAT_SECONDS = 0.2  # between two words of the process, so that its listener can leave
SILENT_SECONDS = 20.0  # without a word: it is stopped, or the machine is
GONE = "the process that learned the merges was ended from outside, perhaps for want of memory; ask again"


def learning(
    text: str, vocab_size: int, *, level: Level = "byte", split: Split = "words"
) -> Steps[BpeTokenizer]:
    """Runs `bpe.learning` in another process. Raises as it does, and TokenizerError if that ended."""
    if len(text) <= SHORT:
        return (yield from bpe.learning(text, vocab_size, level=level, split=split))
    wanted = bpe.merges_wanted(text, vocab_size, level)
    return (yield from _apart(text, wanted, level, split, 0)).tokenizer


def learning_for(text: str, tokenizer: str, most: int | None = None) -> Steps[BpeTokenizer]:
    """Learns the merges for `engine.data.corpora.from_text`. Raises as it does, and TokenizerError for a text
    that is more work than `most` (studies.tokens.bpe_work).
    """
    from engine.data.corpora import training_part  # with torch, which the process would import for nothing

    part, size = training_part(text), bpe_size(tokenizer) or len(bpe.BYTES)
    if most is not None:
        bpe_work.check(part, size, most)
    return (yield from learning(part, size))


def watching(text: str, new_tokens: int, *, level: Level = "byte", split: Split = "words") -> Steps[Watched]:
    """Runs `studies.tokens.bpe_watch.learning` in another process. Raises as `learning` here."""
    if len(text) <= SHORT:
        return (yield from bpe_watch.learning(text, new_tokens, level=level, split=split))
    return (yield from _apart(text, new_tokens, level, split, RUNNERS_UP))


def _apart(text: str, wanted: int, level: Level, split: Split, keep: int) -> Steps[Watched]:
    """Returns what the process learned. Closing the generator ends the process."""
    how = {"text": text, "new_tokens": wanted, "level": level, "split": split, "keep": keep}
    order = json.dumps(how)
    child = start_beside("runs.bpe_process")
    heard: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
    talk = threading.Thread(target=_talk, args=(child, order, heard), name="merges", daemon=True)
    try:
        talk.start()
        yield Progress(0, wanted)
        for message in _words(heard):
            if "refused" in message:
                raise TokenizerError(message["refused"])
            if "done" not in message:
                return _watched(message)
            yield Progress(message["done"], message["total"])
        raise TokenizerError(GONE)
    finally:
        child.kill()
        child.wait()
        if talk.ident is not None:
            talk.join()


def _words(heard: queue.SimpleQueue[dict[str, Any] | None]) -> Iterator[dict[str, Any]]:
    """Yields the process's messages until the last one."""
    with suppress(queue.Empty):
        while (message := heard.get(timeout=SILENT_SECONDS)) is not None:
            yield message


def _talk(
    child: subprocess.Popen[bytes], order: str, heard: queue.SimpleQueue[dict[str, Any] | None]
) -> None:
    """Says the order, listens to the end. The child's input stays open: it ends with whoever started it."""
    assert child.stdin is not None and child.stdout is not None
    with suppress(OSError, ValueError), child.stdout, child.stdin:  # it was killed, perhaps within a line
        child.stdin.write(order.encode() + b"\n")
        child.stdin.flush()
        for line in child.stdout:
            heard.put(json.loads(line))
    heard.put(None)


# In the process ---------------------------------------------------------------------------------


def _serve(orders: IO[bytes], out: IO[bytes]) -> None:
    """One order, its progress, its result."""
    order = json.loads(orders.readline())
    threading.Thread(target=_end_with, args=(orders,), daemon=True).start()
    say = _Voice(out)
    try:
        say.all(_result(order, say))
    except TokenizerError as error:
        say.all({"refused": str(error)})


class _Voice:
    """Lines of JSON. How far it is, it says every BEAT_SECONDS from a thread, however long a step takes."""

    def __init__(self, out: IO[bytes]) -> None:
        self.at = Progress(0, 1)
        self._out = out
        self._ended = threading.Event()
        self._beats = threading.Thread(target=self._beat, daemon=True)
        self._beats.start()

    def heed(self, at: Progress) -> None:
        self.at = at

    def all(self, result: dict[str, Any]) -> None:
        """Writes the result as the last line."""
        self._ended.set()
        self._beats.join()
        self._line(result)

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            self._line({"done": self.at.done, "total": self.at.total})

    def _line(self, what: dict[str, Any]) -> None:
        self._out.write(json.dumps(what).encode() + b"\n")
        self._out.flush()


def _result(order: dict[str, Any], say: _Voice) -> dict[str, Any]:
    seen = finish(bpe_watch.learning(**order), say.heed)
    return {
        "tokenizer": seen.tokenizer.to_dict(),
        "runners_up": seen.runners_up,
        "characters": seen.characters,
        "bytes": seen.bytes,
        "length": seen.length,
    }


def _watched(told: dict[str, Any]) -> Watched:
    """Reads what `_result` returned."""
    runners_up = tuple(
        tuple(((first, second), count) for (first, second), count in rows) for rows in told["runners_up"]
    )
    tokenizer = BpeTokenizer.from_dict(told["tokenizer"])
    return Watched(tokenizer, runners_up, told["characters"], told["bytes"], told["length"])


def _end_with(orders: IO[bytes]) -> NoReturn:
    """Nobody wants the result of who started this and is gone."""
    orders.read()
    os._exit(0)


if __name__ == "__main__":
    die_with(int(sys.argv[1]))
    end_first()
    _serve(sys.stdin.buffer, sys.stdout.buffer)
    os._exit(0)  # a thread still reads the input: Python would abort over it
