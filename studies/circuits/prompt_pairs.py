"""Two prompts that differ only in what the answer depends on (Zhang and Nanda 2024)."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.data.tokenizers import Tokenizer
from engine.errors import ConfigError, HeadError, ShapeError, TokenizerError
from engine.model import Transformer
from engine.parts.cache import KVCache
from engine.probe import Recorder

MOST = 48  # tokens of a prompt: the work grows with their square


@dataclass(frozen=True)
class Prompts:
    """Two texts of equally many tokens, and (the clean prompt's answer, the corrupted one's)."""

    clean: tuple[int, ...]
    corrupted: tuple[int, ...]
    answers: tuple[int, int]

    @property
    def changed(self) -> tuple[int, ...]:
        """The positions at which they differ."""
        return tuple(i for i, (a, b) in enumerate(zip(self.clean, self.corrupted, strict=True)) if a != b)


def prompts_of(tokenizer: Tokenizer, clean: str, corrupted: str, answers: tuple[str, str]) -> Prompts:
    """Returns both texts and answers as ids; of an answer of several tokens the first. Raises TokenizerError
    for unknown or empty texts and for answers with the same first token; ShapeError for texts that are the
    same, too long, or of unlike lengths.
    """
    named = (("first prompt", clean), ("second prompt", corrupted))
    ids = [_ids(tokenizer, text, name) for name, text in named]
    a, b = (
        _ids(tokenizer, text, name)[0]
        for name, text in zip(("first answer", "second answer"), answers, strict=True)
    )
    if len(ids[0]) != len(ids[1]):
        raise ShapeError(
            f"the first prompt has {len(ids[0])} tokens and the second {len(ids[1])}: the numbers must be"
            " equal, so that each token has a counterpart"
        )
    if len(ids[0]) > MOST:
        raise ShapeError(f"the prompts have {len(ids[0])} tokens: at most {MOST} are compared")
    if ids[0] == ids[1]:
        raise ShapeError("the two prompts are the same: change one word in one of them")
    if a == b:
        raise TokenizerError(
            f"both answers begin with the token “{tokenizer.decode([a])}”: their first tokens must differ"
        )
    return Prompts(tuple(ids[0]), tuple(ids[1]), (a, b))


def fits(tokenizer: Tokenizer, clean: str, corrupted: str, answers: tuple[str, str]) -> bool:
    """True if a tokenizer cuts both prompts into equally many tokens, and each answer is one more of them.

    >>> from engine.data.tokenizers.char import CharTokenizer
    >>> letters = CharTokenizer("abcdefghij")
    >>> fits(letters, "ab", "ac", ("d", "e")), fits(letters, "ab", "ac", ("de", "f"))
    (True, False)
    """
    if any(tokenizer.unknown(text) for text in (clean, corrupted, *answers)):
        return False
    a, b = (tokenizer.encode(text) for text in (clean, corrupted))
    ends = [tokenizer.encode(text + answer) for text, answer in zip((clean, corrupted), answers, strict=True)]
    return len(a) == len(b) <= MOST and all(
        end[:-1] == begun and len(tokenizer.encode(answer)) == 1
        for end, begun, answer in zip(ends, (a, b), answers, strict=True)
    )


def inside_a_word(tokenizer: Tokenizer, text: str, answer: str) -> bool:
    """True if an answer goes on with the text's last word, while one token would begin a new word with it."""
    if not answer[:1].isalnum() or not text[-1:].isalnum():
        return False
    return not tokenizer.unknown(" " + answer) and len(tokenizer.encode(" " + answer)) == 1


def _ids(tokenizer: Tokenizer, text: str, name: str) -> list[int]:
    unknown = tokenizer.unknown(text)
    if unknown:
        raise TokenizerError(
            f"this model does not know {' '.join(unknown[:8])}, used in the {name}: leave it out"
        )
    ids = tokenizer.encode(text)
    if not ids:
        raise TokenizerError(f"the {name} is empty: write something there")
    return ids


@dataclass(frozen=True)
class Contrast:
    """The logit(first answer) - logit(second answer) at both prompts' ends, and the likeliest tokens."""

    clean: float
    corrupted: float
    guesses: tuple[int, int]

    @property
    def span(self) -> float:
        """The difference that patching can restore."""
        return self.clean - self.corrupted


@dataclass(frozen=True, eq=False)
class Runs:
    """Both runs of a model, without the batch axis but for `cache`."""

    prompts: Prompts
    contrast: Contrast
    of_clean: list[Tensor] = field(repr=False)  # the activation to put in, of each block
    of_corrupted: list[Tensor] = field(repr=False)  # resid_pre of each block, (query, d_model)
    cache: KVCache | None = field(repr=False)  # its keys and values; None where later tokens change them


@torch.inference_mode()
def both_runs(model: Transformer, prompts: Prompts, site: str) -> Runs:
    """Runs the model on both prompts and records the clean run's `site` of every block. Raises ConfigError
    for an encoder, HeadError without linear logits, and ShapeError for prompts beyond its context.
    """
    config, length = model.config, len(prompts.clean)
    if not config.causal:
        raise ConfigError(
            "causal",
            False,
            "this model fills in masked tokens; it does not predict the next one, so there is no answer to"
            " compare",
        )
    if not model.output.linear:
        raise HeadError("this model's output is not a product with W_U, so an answer has no logit of its own")
    if length > config.context:
        raise ShapeError(f"the prompts have {length} tokens, but this model's context is {config.context}")
    device = model.embedding.device
    cache = KVCache(config, length, model.embedding) if model.can_cache else None
    clean, corrupted = Recorder({site, "norm_final"}), Recorder({"resid_pre", "norm_final"})
    logits = (
        model(torch.tensor([prompts.clean], device=device), clean),
        model(torch.tensor([prompts.corrupted], device=device), corrupted, cache),
    )
    result = [
        float(difference(model, run["norm_final"][:, -1], prompts.answers)) for run in (clean, corrupted)
    ]
    likeliest = [int(each[0, -1].argmax()) for each in logits]
    blocks = range(config.n_layers)
    return Runs(
        prompts,
        Contrast(result[0], result[1], (likeliest[0], likeliest[1])),
        [clean[f"blocks.{i}.{site}"][0] for i in blocks],
        [corrupted[f"blocks.{i}.resid_pre"][0] for i in blocks],
        cache,
    )


def difference(model: Transformer, normed: Tensor, answers: tuple[int, int]) -> Tensor:
    """Returns logit(first) - logit(second) of streams behind the final norm: (batch, d_model) -> (batch,)."""
    a, b = F.linear(normed, model.output_matrix[list(answers)]).float().unbind(-1)
    return a - b
