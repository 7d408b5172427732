"""A fact in the stream: how a prompt's answer rises, block by block, and which parts wrote it.

The lens (nostalgebraist 2020) reads the stream after each block; attribution (Elhage et al. 2021) says what
each part wrote of the answer's logit, less the mean of all logits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from engine.data.tokenizers import Tokenizer
from engine.errors import TokenizerError
from engine.model import Transformer
from engine.recording import Recording, log_softmax
from studies.attention.heads import HeadValue, ranked_heads
from studies.residual.attribution import attribute
from studies.residual.stream import outputs


@dataclass(frozen=True, eq=False)
class AnswerAttribution:
    """The parts of the answer's logit, less the mean of all logits, in nats, (layer,) each. `head` wrote most
    of all heads; None in a model without them. `before` is from before the first block, `rest` the final
    norm's bias; all together make `total`.
    """

    attention: np.ndarray = field(repr=False)
    feedforward: np.ndarray = field(repr=False)
    head: HeadValue | None
    before: float
    rest: float
    total: float

    @property
    def by_attention(self) -> float:
        """The sum over layers."""
        return float(self.attention.sum())

    @property
    def by_feedforward(self) -> float:
        """The sum over layers."""
        return float(self.feedforward.sum())

    @property
    def most(self) -> tuple[str, int, float]:
        """The part that wrote most in one layer: attention or feedforward, its layer, and how much."""
        parts = {"attention": self.attention, "feedforward": self.feedforward}
        name = max(parts, key=lambda part: parts[part].max())
        layer = int(parts[name].argmax())
        return name, layer, float(parts[name][layer])


@dataclass(frozen=True, eq=False)
class Fact:
    """The token `answer` after a prompt, by depth: 0 is the stream before the first block, i + 1 that after
    block i. `rank` counts from 1; `guess` is the likeliest token there. `written` is None where the final
    stream is no sum of writes.
    """

    answer: int
    rank: np.ndarray = field(repr=False)
    probability: np.ndarray = field(repr=False)
    guess: np.ndarray = field(repr=False)
    written: AnswerAttribution | None = field(repr=False)

    @property
    def first(self) -> int | None:
        """The first depth from which on it stays the likeliest; None where it ends behind another."""
        behind = np.flatnonzero(self.rank > 1)
        depth = int(behind[-1]) + 1 if len(behind) else 0
        return depth if depth < len(self.rank) else None

    @property
    def best(self) -> int:
        """The first depth at which its rank is best."""
        return int(self.rank.argmin())

    @property
    def leap(self) -> int | None:
        """The depth that divides its rank by most, of equal ones the first; None where it never rises."""
        ratio = self.rank[:-1] / self.rank[1:]
        return int(ratio.argmax()) + 1 if len(ratio) and ratio.max() > 1 else None


def trace(model: Transformer, recording: Recording, answer: int | None = None) -> Fact:
    """Follows a token (None: the likeliest) through the last position's stream. Raises ShapeError."""
    last = len(recording.ids) - 1
    answer = recording.likeliest(last) if answer is None else answer
    written = _written(model, recording, last, answer) if model.parts.logit_is_sum(model.config) else None
    log_p = _lens(model, recording, last)
    own = log_p[:, answer]
    return Fact(answer, 1 + (log_p > own[:, None]).sum(1), np.exp(own), log_p.argmax(1), written)


@torch.no_grad()
def _lens(model: Transformer, recording: Recording, position: int) -> np.ndarray:
    """Returns the lens's log-probabilities at one position, nats, (depth, vocab)."""
    like = model.embedding
    stream = torch.from_numpy(np.stack([state[position] for state in outputs(recording)]))
    x = stream[None].to(device=like.device, dtype=like.dtype)  # (1, depth, d_model)
    return log_softmax(model.logits(x)[0].float().cpu().numpy())


def _written(model: Transformer, recording: Recording, position: int, answer: int) -> AnswerAttribution:
    result = attribute(model, recording, position, answer, "mean")
    mixes = model.parts.mixer(model.config).present
    return AnswerAttribution(
        result.heads.sum(1) + result.attention_bias,
        result.feedforward,
        ranked_heads(result.heads)[0] if mixes else None,
        result.embedding + result.position,
        result.norm_bias,
        result.total,
    )


@dataclass(frozen=True)
class Answer:
    """An expected text's first token and length; `blank` was put before it where that is likelier."""

    token: int
    tokens: int
    blank: bool


def answer_of(tokenizer: Tokenizer, prompt: str, text: str, logits: Sequence[float] | np.ndarray) -> Answer:
    """Returns the token of an expected text after a prompt; `logits` (vocab,) are the model's at its end. In
    many vocabularies a word begins with its blank: of both spellings the likelier is taken. Raises
    TokenizerError for an empty text and for unknown characters.
    """
    unknown = tokenizer.unknown(text)
    if unknown or not text:
        why = f"this model's vocabulary lacks {' '.join(unknown[:8])}" if unknown else "the answer is empty"
        raise TokenizerError(f"{why}: give something that it can write")
    written = [tokenizer.encode(text)]
    if not (text[:1].isspace() or prompt[-1:].isspace() or tokenizer.unknown(" ")):
        word = tokenizer.encode(" " + text)
        # not of letters: there it is the blank
        written += [word] if word[:1] != tokenizer.encode(" ") else []
    chosen = max(written, key=lambda ids: float(logits[ids[0]]))
    return Answer(chosen[0], len(chosen), chosen is not written[0])
