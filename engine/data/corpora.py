"""Texts to train on: found, checked, split and turned into ids."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.config import bpe_size
from engine.data.progress import Steps
from engine.data.tasks import TASKS, Task, problems
from engine.data.tokenizers import (
    Storable,
    bpe,
    bpe_process,
    bpe_work,
    characters,
)
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import CorpusError

SHAKESPEARE_FILE = "tinyshakespeare.txt"
SHAKESPEARE_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
SHAKESPEARE_URL = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
SHAKESPEARE_TRAIN = 1_003_854  # characters of its first nine tenths
VALIDATION_SHARE = 0.1  # the last tenth
PROBLEMS = 20_000  # of a synthetic task, those that are held out included
STREAM = 200_000  # letters of one that has no problems
LN_2 = float(np.log(2))

Progress = Callable[[int, int], object]  # (bytes so far, bytes in all)


@dataclass(frozen=True)
class Corpus:
    """A text, its tokenizer, and its ids split into training (the first 90% of the characters) and validation
    (the last 10%).

    The text is cut before it is made into tokens: every tokenizer is then measured on the same characters.
    Of a synthetic `task` both parts begin with a line break and hold whole problems; none is in both.
    """

    name: str
    text: str
    tokenizer: Storable
    train: Tensor  # (n_train,) int64
    validation: Tensor  # (n_validation,) int64
    cut: str = "char"  # how the tokenizer was made: TrainConfig.tokenizer
    task: Task | None = None

    @property
    def period(self) -> int:
        """Windows start at multiples of so many tokens: where problems do, in a synthetic task."""
        return self.task.length if self.task else 1

    @property
    def problems(self) -> tuple[int, int]:
        """How many problems of a task are trained on, and held out; (0, 0) where there are none."""
        if self.task is None or self.task.stream:
            return 0, 0
        return len(self.train) // self.period, len(self.validation) // self.period

    def graded(self, length: int) -> Tensor | None:
        """Which of the predicted tokens of a window count in the loss: bool (length,); None where all do."""
        if self.task is None or not self.task.answers_only:
            return None
        return torch.tensor(self.task.graded).repeat(-(-length // self.period))[:length]

    @property
    def vocab_size(self) -> int:
        return self.tokenizer.vocab_size

    @property
    def characters(self) -> int:
        return len(self.text)

    @property
    def kind(self) -> str:
        """What a token is: char, byte or bpe."""
        return self.cut.split(":")[0]

    @cached_property
    def token_characters(self) -> np.ndarray:
        """Characters that begin in each token, by id: int64 (vocab,)."""
        return characters(self.tokenizer)

    @property
    def characters_per_token(self) -> float:
        """Over the whole text."""
        return self.characters / (len(self.train) + len(self.validation))

    @cached_property
    def baselines(self) -> dict[str, float]:
        """Validation loss (nats per token) of four predictors that have no network.

        `uniform` knows nothing: ln V. `unigram` knows how often each token occurs in the training split,
        `bigram` which follows which, `trigram` which follows which two; they count with add-one smoothing.
        """
        v = self.vocab_size
        train, validation = self.train.numpy(), self.validation.numpy()
        counts = self._counts(len(validation))
        unigram = np.bincount(train, minlength=v) + 1.0
        unigram /= unigram.sum()
        result = {"uniform": float(np.log(v)), "unigram": float(-np.log(unigram[validation])[counts].mean())}
        result["bigram"] = _following(train, validation, v, 1, counts)
        if min(len(train), len(validation)) > 2:
            result["trigram"] = _following(train, validation, v, 2, counts)
        return result

    def _counts(self, length: int) -> np.ndarray:
        """Which tokens of a split count in the loss: bool (length,), all of them but in some tasks."""
        some = self.graded(length - 1)
        return np.ones(length, dtype=bool) if some is None else np.concatenate(([False], some.numpy()))

    @cached_property
    def baselines_in_bits(self) -> dict[str, float]:
        """The same predictors in bits per character, over the characters of the tokens that they predict."""
        # (n_validation,)
        of = self.token_characters[self.validation.numpy()] * self._counts(len(self.validation))
        predicted = {"bigram": of[1:], "trigram": of[2:]}  # what comes before is given
        return {
            name: nats * int((some > 0).sum() if self.task else len(some)) / max(int(some.sum()), 1) / LN_2
            for name, nats in self.baselines.items()
            for some in [predicted.get(name, of)]
        }


def _following(
    train: np.ndarray, validation: np.ndarray, vocab: int, given: int, counted: np.ndarray
) -> float:
    """Mean -ln p of each `counted` validation token (n_validation,) after the `given` before it, p = (count
    of all + 1) / (count of those before + V) in the training split.
    """

    def numbered(tokens: np.ndarray, length: int) -> np.ndarray:
        """Every run of `length` tokens as one number below V^length, which int64 holds up to V = 2^21."""
        starts = len(tokens) - given
        number = np.zeros(starts, dtype=np.int64)
        for i in range(length):
            number = number * vocab + tokens[i : i + starts]
        return number

    def counts(length: int) -> np.ndarray:
        # Only what occurs is counted: a table of all V x V would be larger than the text.
        found, often = np.unique(numbered(train, length), return_counts=True)
        asked = numbered(validation, length)
        place = np.minimum(np.searchsorted(found, asked), len(found) - 1)
        return np.where(found[place] == asked, often[place], 0)

    losses = -np.log((counts(given + 1) + 1.0) / (counts(given) + vocab))
    return float(losses[counted[given:]].mean())


def learning(text: str, tokenizer: str, most: int | None = None) -> Steps[bpe.BpeTokenizer]:
    """The merges of `from_text`, which may take a while, in steps, in a process of their own. Raises as it
    does, and TokenizerError for a text that is more work than `most` (engine.data.tokenizers.bpe_work).
    """
    part, size = training_part(text), bpe_size(tokenizer) or len(bpe.BYTES)
    if most is not None:
        bpe_work.check(part, size, most)
    return (yield from bpe_process.learning(part, size))


def training_part(text: str) -> str:
    """What is trained on of a text. Raises CorpusError for one that cannot be split."""
    text, cut = _checked(text)
    return text[:cut]


def from_text(
    text: str, name: str = "your text", tokenizer: str = "char", cutter: bpe.BpeTokenizer | None = None
) -> Corpus:
    """A corpus of any text, cut as TrainConfig.tokenizer says: `char`, `byte` or `bpe:V`.

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
    # with 256 tokens there is no merge: each byte is a token
    cutter = cutter or bpe.train(text[:cut], size or len(bpe.BYTES))
    train, validation = (
        torch.tensor(cutter.encode(part), dtype=torch.int64) for part in (text[:cut], text[cut:])
    )
    if min(len(train), len(validation)) < 2:
        raise CorpusError(
            f"the tokenizer {tokenizer} makes {len(train)} tokens to train on and {len(validation)} to test"
            " on out of this text; at least 2 of each are needed: use a longer text or a smaller vocabulary"
        )
    return Corpus(name, text, cutter, train, validation, tokenizer)


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


def from_task(task: Task, tokenizer: str = "char") -> Corpus:
    """A corpus of a synthetic task: its problems, one a line, or its stream. Raises CorpusError for another
    tokenizer than `char`: a problem has to begin at the same place of each line.
    """
    if tokenizer != "char":
        raise CorpusError(
            f"the task {task.title} is written in single characters: the tokenizer must be char, not"
            f" {tokenizer}"
        )
    if task.stream:
        text = task.draw(random.Random(f"{task.name}-0"), STREAM)
        return replace(from_text(text, task.name), task=task)
    held_out = round(PROBLEMS * VALIDATION_SHARE)
    parts = ["\n" + "".join(line + "\n" for line in p) for p in problems(task, PROBLEMS - held_out, held_out)]
    letters = CharTokenizer("".join(sorted({"\n", *task.alphabet})))
    train, validation = (torch.from_numpy(letters.encode_array(part)) for part in parts)
    return Corpus(task.name, "".join(parts), letters, train, validation, task=task)


def check_length(corpus: Corpus, context: int) -> None:
    """Raises CorpusError, saying how much is missing, when the training split holds no window of context + 1
    tokens.
    """
    if len(corpus.train) < context + 2:
        tokens = (context + 2 - len(corpus.train)) / (
            1 - VALIDATION_SHARE
        )  # a tenth of what is added is for validation
        missing = int(np.ceil(tokens * corpus.characters_per_token))
        smaller = ", or a smaller vocabulary" if corpus.kind == "bpe" else ""
        raise CorpusError(
            f"{corpus.name} has {len(corpus.train)} tokens to train on; a context of {context} needs"
            f" {context + 2}: add about {missing} more characters, or choose a shorter context{smaller}"
        )


def load(
    name: str,
    progress: Progress | None = None,
    tokenizer: str = "char",
    cutter: bpe.BpeTokenizer | None = None,
) -> Corpus:
    """The corpus of a name in NAMES, cut as TrainConfig.tokenizer says; `cutter` as in `from_text`. Raises
    CorpusError saying what to do when it cannot be had.
    """
    if name in TASKS:
        return from_task(TASKS[name], tokenizer)
    if name not in CORPORA:
        raise CorpusError(f"no corpus is called {name!r}; there are {', '.join(NAMES)}")
    return from_text(CORPORA[name](progress), name, tokenizer, cutter)


def shakespeare_path() -> Path | None:
    """Where Tiny Shakespeare already lies: $GLASSFORMER_DATA, then the user's cache folder; None if
    nowhere.
    """
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
        raise CorpusError(
            f"{path} is not Tiny Shakespeare (its SHA-256 differs): remove it, and it will be downloaded"
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


CORPORA: dict[str, Callable[[Progress | None], str]] = {"shakespeare": _shakespeare, "python": _python}
NAMES = (*CORPORA, *TASKS)


def default_name() -> str:
    """`shakespeare` where it lies on this machine already, else `python`, which always does."""
    return "shakespeare" if shakespeare_path() is not None else "python"
