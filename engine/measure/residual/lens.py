"""The logit lens: what the model would say if it stopped after each block (nostalgebraist 2020, "interpreting
GPT: the logit lens").
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from engine.config import ResolvedConfig
from engine.data.progress import Progress, Steps, finish
from engine.errors import HeadError
from engine.measure.recording import Recording
from engine.measure.residual.writes import outputs
from engine.model import Transformer

SHOWN = 10  # tokens that are kept of each distribution
AT_ONCE = 4_000_000  # logits that are held at a time: those of a real vocabulary at all depths are gigabytes


@dataclass(frozen=True, eq=False)
class Lens:
    """Depth 0 is the stream before the first block, depth i + 1 that after block i; the last depth is the
    model's output.

    `kl` is KL(final || depth) = sum of p_final (ln p_final - ln p_depth), in nats: 0 at the last depth, and
    never negative. `settled` is the first depth from which on a position's top guess stays the final one. Of
    each distribution the likeliest tokens are kept, with their probabilities there and at the output.
    """

    guess: np.ndarray  # (depth, query) token id
    probability: np.ndarray  # (depth, query), of the guess
    kl: np.ndarray  # (depth, query), nats
    settled: np.ndarray  # (query,)
    likeliest: np.ndarray = field(repr=False)  # (depth, query, shown) ids, best first
    here: np.ndarray = field(repr=False)  # (depth, query, shown), their probabilities at that depth
    output: np.ndarray = field(repr=False)  # (depth, query, shown), and at the last one

    def top(self, depth: int, position: int, count: int = SHOWN) -> np.ndarray:
        """The ids of the likeliest tokens there, best first: at most (count,), and no more than are kept."""
        found: np.ndarray = self.likeliest[depth, position, :count]
        return found


def logit_lens(model: Transformer, recording: Recording) -> Lens:
    """norm_final and the output head applied to the stream at every depth, in the model's own arithmetic.

    A post-norm model has no norm_final: its stream after each block has been through norm2 already. Raises
    HeadError for a model without an output head.
    """
    return finish(lens_steps(model, recording))


@torch.no_grad()
def lens_steps(model: Transformer, recording: Recording) -> Steps[Lens]:
    """`logit_lens`, a few positions at a time: with 30 layers and 49,152 tokens it takes a second."""
    if not model.output.present:
        raise HeadError("this model has no output head: no depth of it says anything")
    like = model.embedding
    streams = torch.from_numpy(np.stack(outputs(recording)))  # (depth, query, d_model)
    length = streams.shape[1]
    some = _positions_at_once(model.config)
    found = []
    for at in range(0, length, some):
        x = streams[:, at : at + some].to(device=like.device, dtype=like.dtype)
        logits = model.logits(x)  # (depth, some, vocab)
        found.append(read_lens(logits.float().cpu()))
        yield Progress(min(at + some, length), length)
    return joined(found)


def in_one_step(config: ResolvedConfig, length: int) -> bool:
    """Whether a text of so many tokens is read at once, and so quickly."""
    return length <= _positions_at_once(config)


def _positions_at_once(config: ResolvedConfig) -> int:
    return max(1, AT_ONCE // ((config.n_layers + 1) * config.vocab_size))


def read_lens(logits: Tensor) -> tuple[Tensor, ...]:
    """What is kept of logits (depth, query, vocab), the last depth being the output: guess, its probability,
    KL, and of the likeliest tokens ids, probabilities, and probabilities at the output.
    """
    total = logits.logsumexp(-1)  # (depth, query)
    best, guess = logits.max(-1)
    values, likeliest = logits.topk(min(SHOWN, logits.shape[-1]), dim=-1)  # (depth, query, shown)
    final = (logits[-1] - total[-1, :, None]).exp()  # (query, vocab): p_final
    # ln p = logit - total: what is left of the sum over the vocabulary is a product, and nothing so large as
    # the logits is made once more.
    expected = torch.einsum("dqv,qv->dq", logits, final) - total  # (depth, query): mean of ln p_depth
    kl = (expected[-1] - expected).clamp_min(0.0)  # rounding may leave -1e-6
    at_output = logits[-1].expand_as(logits).gather(-1, likeliest)
    output = (at_output - total[-1, :, None]).exp()
    return guess, (best - total).exp(), kl, likeliest, (values - total[..., None]).exp(), output


def joined(found: list[tuple[Tensor, ...]]) -> Lens:
    """Of what was read of some positions after others."""
    parts = [torch.cat(part, dim=1).numpy() for part in zip(*found, strict=True)]
    guess, probability, kl, likeliest, here, output = parts
    return Lens(guess, probability, kl, first_settled(guess), likeliest, here, output)


def first_settled(guess: np.ndarray) -> np.ndarray:
    """(depth, query) -> (query,): the first depth from which on the guess is the last depth's.

    >>> first_settled(np.array([[1, 2], [3, 2], [1, 2]])).tolist()
    [2, 0]
    """
    same = guess == guess[-1]
    stays = np.logical_and.accumulate(same[::-1])[::-1]  # same here and at every later depth
    return stays.argmax(0)
