"""Likely text beside sampled text: the surprise of each token, and how much of a text only repeats itself.

Holtzman et al. 2020 ("The curious case of neural text degeneration"): what maximises probability is blander
than what people write, and soon a loop; their text is as surprising as a sample.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from engine.config import SampleConfig
from engine.data.progress import Progress, Steps
from engine.data.tokenizers import Tokenizer
from engine.model import Transformer
from studies.generation.beam import beam_search, sampled

RUN = 8  # characters in a row that count as repeated


@dataclass(frozen=True, eq=False)
class Continuation:
    """A text after a prompt, and the surprise of its tokens to the model: `nats` (token,), -ln p of each."""

    text: str
    nats: np.ndarray = field(repr=False)

    @property
    def mean(self) -> float:
        return float(self.nats.mean())

    @property
    def repeats(self) -> float:
        return repeated(self.text)


@dataclass(frozen=True, eq=False)
class Compared:
    """Continuations of one prompt: the most probable that a beam finds, a sample at temperature 1, and the
    author's, where the prompt is from a known text.
    """

    beam: Continuation
    sample: Continuation
    author: Continuation | None


def repeated(text: str, run: int = RUN) -> float:
    """Returns the share of a text's runs of `run` characters that stand in it before; 0 for a shorter one.

    >>> repeated("abcdabcd", 4), repeated("abcdefgh", 4), repeated("abc", 4)
    (0.2, 0.0, 0.0)
    """
    runs = [text[at : at + run] for at in range(len(text) - run + 1)]
    return (len(runs) - len(set(runs))) / len(runs) if runs else 0.0


@torch.inference_mode()
def surprises(model: Transformer, prompt: Sequence[int], tokens: Sequence[int]) -> np.ndarray:
    """Returns -ln p of each of `tokens` after the prompt and those before it, (token,)."""
    logits = model(torch.tensor([[*prompt, *tokens[:-1]]]))[0, len(prompt) - 1 :]  # (token, vocab)
    log_p = logits.double().log_softmax(-1)
    return -log_p[torch.arange(len(tokens)), torch.tensor(tokens)].numpy()


def compare(
    model: Transformer,
    tokenizer: Tokenizer,
    prompt: Sequence[int],
    length: int,
    width: int,
    seed: int,
    author: Sequence[int] = (),
    ends: Collection[int] = (),
) -> Steps[Compared]:
    """Continues a prompt by `length` tokens with a beam of `width` and by sampling, with a progress after
    each step; `author` is how it goes on in the text it is from, `ends` are tokens that end a text. All of it
    must fit into the context.
    """
    searching = beam_search(model, prompt, length, width, stop=ends)
    try:
        while True:
            step = next(searching)
            yield Progress(step.done, step.total + 1)
    except StopIteration as end:
        beam = end.value
    drawn, _ = sampled(model, prompt, length, SampleConfig(temperature=1.0, seed=seed), ends)

    def continued(tokens: Sequence[int]) -> Continuation:
        return Continuation(tokenizer.decode(list(tokens)), surprises(model, prompt, tokens))

    return Compared(
        continued(beam.path(beam.winner)), continued(drawn), continued(author) if author else None
    )
