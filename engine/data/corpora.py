"""Texts to train on, by name: read, checked, split and tokenized."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import torch

from engine.additions import import_additions
from engine.config import bpe_size
from engine.data.corpus import VALIDATION_SHARE, Corpus
from engine.data.tokenizers import bpe
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import CorpusError

SHAKESPEARE_FILE = "tinyshakespeare.txt"
SHAKESPEARE_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
SHAKESPEARE_URL = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
SHAKESPEARE_TRAIN = 1_003_854  # characters of its first nine tenths

Progress = Callable[[int, int], object]  # (bytes so far, bytes in all)


def training_part(text: str) -> str:
    """Returns the training split of a text. Raises CorpusError for a text that cannot be split."""
    text, cut = _checked(text)
    return text[:cut]


def from_text(
    text: str, name: str = "your text", tokenizer: str = "char", cutter: bpe.BpeTokenizer | None = None
) -> Corpus:
    """Makes a corpus of any text, tokenized as TrainConfig.tokenizer says: `char`, `byte` or `bpe:V`.

    BPE learns its merges on the training split alone: a merge learned on the validation split would know its
    words before the model has seen them, and the loss measured there would be too low. With little text there
    are fewer than V tokens; a `cutter` that `learning` gave spares them. Raises CorpusError for a text that
    cannot be split and trained on, ConfigError for another tokenizer.
    """
    size = bpe_size(tokenizer)
    text, cut = _checked(text)
    if tokenizer == "char":
        letters = CharTokenizer.train(text)
        ids = torch.from_numpy(letters.encode_array(text))
        return Corpus(name, text, letters, ids[:cut], ids[cut:])
    cutter = cutter or (bpe.train(text[:cut], size) if size else bpe.UNMERGED)
    train, validation = (cutter.encode_array(part) for part in (text[:cut], text[cut:]))
    if min(len(train), len(validation)) < 2:
        raise CorpusError(
            f"the tokenizer {tokenizer} makes {len(train)} tokens to train on and {len(validation)} to test"
            " on out of this text; at least 2 of each are needed: use a longer text or a smaller vocabulary"
        )
    return Corpus(name, text, cutter, torch.from_numpy(train), torch.from_numpy(validation), tokenizer)


def _checked(text: str) -> tuple[str, int]:
    """(text with plain line ends, where validation begins). Raises CorpusError for too little of it."""
    text = text.replace("\r\n", "\n")
    if len(text) < 20:
        raise CorpusError(
            f"the text has {len(text)} characters; at least 20 are needed to train on some and test on the"
            " rest"
        )
    if text == text[0] * len(text):
        raise CorpusError(
            "the text repeats a single character; at least 2 different ones are needed for there to be"
            " anything to predict"
        )
    return text, min(int(len(text) * (1 - VALIDATION_SHARE)), len(text) - 2)


def load(
    name: str,
    progress: Progress | None = None,
    tokenizer: str = "char",
    cutter: bpe.BpeTokenizer | None = None,
) -> Corpus:
    """Returns the corpus of one of `names()`; `tokenizer`, `cutter` as in `from_text`. Raises CorpusError."""
    if name in TEXTS:
        return from_text(TEXTS[name](progress), name, tokenizer, cutter)
    if name not in names():
        raise CorpusError(f"no corpus is called {name!r}; there are {', '.join(names())}")
    return MADE[name](tokenizer)


def shakespeare_path() -> Path | None:
    """Returns the file of Tiny Shakespeare, in $GLASSFORMER_DATA or the user's cache folder, or None."""
    for folder in (os.environ.get("GLASSFORMER_DATA"), cache_folder()):
        if folder and (path := Path(folder) / SHAKESPEARE_FILE).is_file():
            return path
    return None


def cache_folder() -> Path:
    """Returns the user's cache folder for this program (not created)."""
    import pooch

    return Path(pooch.os_cache("glassformer"))


def _shakespeare(progress: Progress | None) -> str:
    path = shakespeare_path()
    if path is None:
        path = _download(progress)
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != SHAKESPEARE_SHA256:
        raise CorpusError(
            f"{path.name} is not Tiny Shakespeare (its SHA-256 differs): remove it, and it will be downloaded"
            " again"
        )
    return data.decode("utf-8")


def _download(progress: Progress | None) -> Path:
    import pooch

    try:
        pooch.get_logger().setLevel("WARNING")  # it would print where it downloads from
        downloader = pooch.HTTPDownloader(progressbar=_Bar(progress) if progress else False, timeout=10)
        return Path(
            pooch.retrieve(
                SHAKESPEARE_URL,
                f"sha256:{SHAKESPEARE_SHA256}",
                SHAKESPEARE_FILE,
                cache_folder(),
                downloader=downloader,
            )
        )
    except (OSError, ValueError) as error:  # requests' errors are OSErrors; a wrong checksum is a ValueError
        raise CorpusError(
            f"Tiny Shakespeare could not be downloaded ({type(error).__name__}). Put {SHAKESPEARE_FILE} into"
            " a folder named by $GLASSFORMER_DATA, or use the corpus 'python', which needs no network"
        ) from error


class _Bar:
    """The progress-bar shape that pooch expects, handing its numbers to a callback."""

    def __init__(self, report: Progress) -> None:
        self.report, self.total, self.done = report, 0, 0

    def update(self, n: int) -> None:
        self.done += n
        self.report(self.done, self.total)

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        pass


def _python(progress: Progress | None) -> str:
    """The Python language reference that every CPython carries, as plain text."""
    from pydoc_data import topics

    return "\n\n".join(text.strip() for _, text in sorted(topics.topics.items())) + "\n"


TEXTS: dict[str, Callable[[Progress | None], str]] = {"shakespeare": _shakespeare, "python": _python}
# Corpora that are no text but made: their tokenizer -> the corpus. What adds to this module enters its own.
MADE: dict[str, Callable[[str], Corpus]] = {}


def names() -> tuple[str, ...]:
    """Returns the names of all corpora."""
    import_additions(__name__)
    return (*TEXTS, *MADE)


def default_name() -> str:
    """Returns `shakespeare` where it lies on this machine already, else `python`, which always does."""
    return "shakespeare" if shakespeare_path() is not None else "python"
