"""Texts to train on: found, checked, split and turned into ids."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.errors import CorpusError
from engine.tokenizers import Tokenizer
from engine.tokenizers.char import CharTokenizer

SHAKESPEARE_FILE = "tinyshakespeare.txt"
SHAKESPEARE_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
SHAKESPEARE_URL = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
VALIDATION_SHARE = 0.1  # the last tenth

Progress = Callable[[int, int], object]  # (bytes so far, bytes in all)


@dataclass(frozen=True)
class Corpus:
    """A text, its tokenizer, and its ids split into training (the first 90%) and validation (the last 10%)."""

    name: str
    text: str
    tokenizer: Tokenizer
    train: Tensor  # (n_train,) int64
    validation: Tensor  # (n_validation,) int64

    @property
    def vocab_size(self) -> int:
        return self.tokenizer.vocab_size

    @property
    def characters(self) -> int:
        return len(self.text)

    @cached_property
    def baselines(self) -> dict[str, float]:
        """Validation loss (nats per token) of three predictors that have no network.

        `uniform` knows nothing: ln V. `unigram` knows how often each token occurs in the training split,
        `bigram` which follows which; both count with add-one smoothing.
        """
        v = self.vocab_size
        train, validation = self.train.numpy(), self.validation.numpy()
        unigram = np.bincount(train, minlength=v) + 1.0
        unigram /= unigram.sum()
        result = {"uniform": float(np.log(v)), "unigram": float(-np.log(unigram[validation]).mean())}
        if v <= 4096:  # a table of pairs beyond that is larger than the text
            pairs = np.bincount(train[:-1] * v + train[1:], minlength=v * v).reshape(v, v) + 1.0
            pairs /= pairs.sum(axis=1, keepdims=True)
            result["bigram"] = float(-np.log(pairs[validation[:-1], validation[1:]]).mean())
        return result


def from_text(text: str, name: str = "your text") -> Corpus:
    """A character corpus of any text. Raises CorpusError for one that cannot be split and trained on."""
    text = text.replace("\r\n", "\n")
    if len(text) < 20:
        raise CorpusError(f"the text has {len(text)} characters; at least 20 are needed to train on some and test on the rest")
    tokenizer = CharTokenizer.train(text)
    if tokenizer.vocab_size < 2:
        raise CorpusError("the text repeats a single character; at least 2 different ones are needed for there to be anything to predict")
    ids = torch.from_numpy(tokenizer.encode_array(text))
    cut = min(int(len(ids) * (1 - VALIDATION_SHARE)), len(ids) - 2)
    return Corpus(name, text, tokenizer, ids[:cut], ids[cut:])


def check_length(corpus: Corpus, context: int) -> None:
    """Raises CorpusError, saying how much is missing, when the training split holds no window of context + 1 tokens."""
    if len(corpus.train) < context + 2:
        missing = int(np.ceil((context + 2 - len(corpus.train)) / (1 - VALIDATION_SHARE)))
        raise CorpusError(
            f"{corpus.name} has {len(corpus.train)} tokens to train on; a context of {context} needs {context + 2}: "
            f"add about {missing} more characters, or choose a shorter context"
        )


def load(name: str, progress: Progress | None = None) -> Corpus:
    """The corpus of a name in CORPORA. Raises CorpusError saying what to do when it cannot be had."""
    if name not in CORPORA:
        raise CorpusError(f"no corpus is called {name!r}; there are {', '.join(CORPORA)}")
    return from_text(CORPORA[name](progress), name)


def shakespeare_path() -> Path | None:
    """Where Tiny Shakespeare already lies: $GLASSFORMER_DATA, then the user's cache folder; None if nowhere."""
    for folder in (os.environ.get("GLASSFORMER_DATA"), cache_folder()):
        if folder and (path := Path(folder) / SHAKESPEARE_FILE).is_file():
            return path
    return None


def cache_folder() -> Path:
    """The user's cache folder for this program (not created)."""
    import pooch

    return Path(pooch.os_cache("glassformer"))


def _shakespeare(progress: Progress | None) -> str:
    path = shakespeare_path()
    if path is None:
        path = _download(progress)
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != SHAKESPEARE_SHA256:
        raise CorpusError(f"{path} is not Tiny Shakespeare (its SHA-256 differs): remove it, and it will be downloaded again")
    return data.decode("utf-8")


def _download(progress: Progress | None) -> Path:
    import pooch

    try:
        pooch.get_logger().setLevel("WARNING")  # it would print where it downloads from
        downloader = pooch.HTTPDownloader(progressbar=_Bar(progress) if progress else False, timeout=10)
        return Path(pooch.retrieve(SHAKESPEARE_URL, f"sha256:{SHAKESPEARE_SHA256}", SHAKESPEARE_FILE, cache_folder(), downloader=downloader))
    except (OSError, ValueError) as error:  # requests' errors are OSErrors; a wrong checksum is a ValueError
        raise CorpusError(
            f"Tiny Shakespeare could not be downloaded ({type(error).__name__}). Put {SHAKESPEARE_FILE} into a folder named by "
            "$GLASSFORMER_DATA, or use the corpus 'python', which needs no network"
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


CORPORA: dict[str, Callable[[Progress | None], str]] = {"shakespeare": _shakespeare, "python": _python}


def default_name() -> str:
    """`shakespeare` where it lies on this machine already, else `python`, which always does."""
    return "shakespeare" if shakespeare_path() is not None else "python"
