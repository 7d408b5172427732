"""Published vocabularies, read by tiktoken. A typed text never becomes a special token here."""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import TokenizerError

if TYPE_CHECKING:
    import tiktoken

END_OF_TEXT = "<|endoftext|>"
GPT2 = "gpt2"
HOST = "openaipublic.blob.core.windows.net"
SECONDS = 5.0  # that a caller waits for a download; tiktoken itself sets no limit


PUBLISHED: dict[str, tuple[str, ...]] = {  # name -> the files below HOST that tiktoken downloads
    "gpt2": ("gpt-2/encodings/main/vocab.bpe", "gpt-2/encodings/main/encoder.json"),
    "cl100k_base": ("encodings/cl100k_base.tiktoken",),
    "o200k_base": ("encodings/o200k_base.tiktoken",),
}


@dataclass(frozen=True, eq=False)
class PublishedTokenizer:
    """A tiktoken encoding behind the engine's interface."""

    name: str
    encoding: tiktoken.Encoding = field(repr=False)

    @property
    def vocab_size(self) -> int:
        """The rows of an embedding for it: the largest id, special tokens included, plus one."""
        return int(self.encoding.n_vocab)

    @property
    def special(self) -> dict[str, int]:
        """Special tokens by id. A program inserts these ids; no text becomes one."""
        named = {text: self.encoding.encode_single_token(text) for text in self.encoding.special_tokens_set}
        return dict(sorted(named.items(), key=lambda item: item[1]))

    def encode(self, text: str) -> list[int]:
        """Encodes a text, all ordinary: `<|endoftext|>` typed by a person is seven ids of gpt2's, not one.

        Half characters are read as `whole_characters` makes them. Raises TokenizerError where tiktoken's
        pattern gives up, which a run of a million blanks makes it do.
        """
        try:
            return list(self.encoding.encode_ordinary(whole_characters(text)[0]))
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException as error:  # a Rust panic is not an Exception
            raise TokenizerError(
                f"{self.name} cannot cut this text: tiktoken's pattern gave up, as it does on endless runs of"
                " blanks. Shorten them"
            ) from error

    def merges(self, word: bytes) -> list[tuple[int, tuple[bytes, ...]]]:
        """Merges a word as BPE does, the earliest learned pair first. Returns (id of the new token, pieces by
        then) of each merge. The word is one that `encode` does not divide before it merges, such as a run of
        letters.
        """
        pieces, merged = [bytes([byte]) for byte in word], list[tuple[int, tuple[bytes, ...]]]()
        while pairs := [
            (rank, at)
            for at, pair in enumerate(pairwise(pieces))
            if (rank := self._ids.get(b"".join(pair))) is not None
        ]:
            rank, at = min(pairs)
            pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
            merged.append((rank, tuple(pieces)))
        return merged

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        """All tokens by their bytes: the ids of pieces are in the order in which they were learned."""
        return {
            piece: self.encoding.encode_single_token(piece) for piece in self.encoding.token_byte_values()
        }

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns the bytes of ids. Raises TokenizerError for an id that stands for nothing."""
        try:
            return b"".join([self.encoding.decode_single_token_bytes(i) for i in ids])
        except (KeyError, OverflowError):
            raise TokenizerError(
                f"{self.name} has no token for one of these ids; they lie between 0 and {self.vocab_size - 1}"
            ) from None


def whole_characters(text: str) -> tuple[str, int]:
    r"""Returns (the text as UTF-8 can hold it, how many surrogates were replaced): one without its other half
    becomes U+FFFD.

    >>> whole_characters("a\ud83d\ude00b\ud83d")
    ('a😀b�', 1)
    """
    if text.isascii():
        return text, 0
    try:
        text.encode("utf-8")
        return text, 0
    except UnicodeEncodeError:
        joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        alone = sum("\ud800" <= c <= "\udfff" for c in joined)
        return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in joined), alone


# Loading ----------------------------------------------------------------------------------------

_lock = threading.Lock()
_loads: dict[str, Future[PublishedTokenizer]] = {}


def load(name: str, seconds: float = SECONDS) -> PublishedTokenizer:
    """Returns an encoding by name, cached or downloaded. Raises TokenizerError after `seconds`.

    A download that is late goes on behind: a later call finds it.
    """
    if name not in PUBLISHED:
        raise TokenizerError(f"no published encoding is called {name!r}; known: {', '.join(PUBLISHED)}")
    future = _begin(name)
    try:
        return future.result(timeout=seconds)
    except Late:
        if not future.done():
            raise TokenizerError(
                f"{name} has not arrived from {HOST} within {seconds:g} seconds; the download goes on, so try"
                " again in a while"
            ) from None
        raise TokenizerError(_sentence(name, "Timeout")) from None
    except Exception as error:
        raise TokenizerError(_sentence(name, type(error).__name__)) from error


def ready(name: str) -> bool:
    """True if an encoding is in memory already, so that `load` returns at once."""
    future = _loads.get(name)
    return future is not None and future.done() and future.exception() is None


def here(name: str) -> bool:
    """True if an encoding needs no network: in memory, or all its files in tiktoken's cache."""
    folder = _cache()
    return ready(name) or (
        folder is not None
        and all(
            (folder / hashlib.sha1(f"https://{HOST}/{file}".encode()).hexdigest()).is_file()
            for file in PUBLISHED[name]
        )
    )


def _cache() -> Path | None:
    """Where tiktoken keeps what it downloaded; None where somebody has switched that off."""
    named = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if named is None:
        return Path(tempfile.gettempdir()) / "data-gym-cache"
    return Path(named) if named else None


def load_all(
    names: Iterable[str], seconds: float = SECONDS
) -> tuple[dict[str, PublishedTokenizer], dict[str, str]]:
    """Loads encodings within `seconds` and returns (those here, by name; a sentence for the others)."""
    wanted = [name for name in names if name in PUBLISHED]
    for name in wanted:
        _begin(name)
    end, encodings, problems = time.monotonic() + seconds, {}, {}
    for name in wanted:
        try:
            encodings[name] = load(name, max(0.0, end - time.monotonic()))
        except TokenizerError as error:
            problems[name] = str(error)
    return encodings, problems


def _sentence(name: str, error: str) -> str:
    return (
        f"{name} could not be loaded ({error}): tiktoken fetches its list of tokens once from {HOST}. "
        "Connect this machine, or put the file into the folder that $TIKTOKEN_CACHE_DIR names"
    )


def _begin(name: str) -> Future[PublishedTokenizer]:
    """The load of an encoding, under way or successful; one that failed is begun anew."""
    with _lock:
        future = _loads.get(name)
        if future is not None and (not future.done() or future.exception() is None):
            return future
        future = _loads[name] = Future()
    threading.Thread(target=_fill, args=(future, name), name=f"tiktoken-{name}", daemon=True).start()
    return future


def _fill(future: Future[PublishedTokenizer], name: str) -> None:
    try:
        future.set_result(_read(name))
    except BaseException as error:  # whoever waits is told, whatever it was
        future.set_exception(error)


def _read(name: str) -> PublishedTokenizer:
    """Bypasses `tiktoken.get_encoding`, whose one lock a download that hangs would keep."""
    import tiktoken
    from tiktoken_ext.openai_public import ENCODING_CONSTRUCTORS  # type: ignore[import-untyped]

    return PublishedTokenizer(name, tiktoken.Encoding(**ENCODING_CONSTRUCTORS[name]()))
