"""Beam search: the few best continuations so far are kept at each step, and the whole tree is handed over."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.config import SampleConfig
from engine.data.progress import Progress, Steps
from engine.errors import ConfigError, ShapeError
from engine.model import Transformer
from engine.parts.cache import KVCache
from engine.sample.decoder import Held
from engine.sample.generate import steps
from studies.generation.outcome import likeliest_ids

MAX_WIDTH, MAX_DEPTH = 64, 512


@dataclass(frozen=True)
class Node:
    """One token on one branch. Log-probabilities are natural; `total` is their sum from the root on."""

    index: int
    parent: int | None  # index; None below the root
    token: int
    depth: int  # tokens written, this one included
    log_probability: float  # of this token after its branch
    total: float
    score: float  # total / depth^length_penalty: what finished branches are compared by
    in_beam: bool  # among the best of its step; the others are pruned
    finished: bool  # it ended with a stop token

    @property
    def probability(self) -> float:
        return math.exp(self.log_probability)


@dataclass(frozen=True)
class Beam:
    """The tree of a search, and its winner (an index into `nodes`)."""

    nodes: tuple[Node, ...]
    winner: int

    def path(self, index: int) -> tuple[int, ...]:
        tokens: list[int] = []
        place: int | None = index
        while place is not None:
            tokens.append(self.nodes[place].token)
            place = self.nodes[place].parent
        return tuple(reversed(tokens))

    def ended(self) -> tuple[Node, ...]:
        """Returns the finished branches and those kept at the last step, best score first."""
        deepest = self.nodes[-1].depth
        last = [node for node in self.nodes if node.in_beam and (node.finished or node.depth == deepest)]
        return tuple(sorted(last, key=lambda node: (-node.score, node.index)))


@torch.inference_mode()
def beam_search(
    model: Transformer,
    tokens: Sequence[int],
    depth: int,
    width: int,
    *,
    length_penalty: float = 1.0,
    stop: Collection[int] = (),
    shown: int = 0,
) -> Steps[Beam]:
    """Searches for the continuation of `tokens` (at least one) with the highest score, at most `depth` tokens
    long, with a progress after each step.

    At each step every branch is continued by every token; of all these candidates the `width` with the
    highest total live on (of equal ones, the one of the better branch, then of the smaller id). One that ends
    in a `stop` token is finished if it is among the best `width`, and frees its place. In the end finished
    and living branches are compared by total / length^length_penalty (Wu et al. 2016 use another form of it;
    this is Hugging Face's): above 1 favours long ones, below 0 short ones, and without stop tokens all are
    equally long. The search goes on to the full depth while a branch lives, which is Hugging Face's
    `early_stopping="never"`; its default gives up earlier and may miss the best.

    Besides what is kept, the tree holds the `shown` (0: width) likeliest children of every branch. Width 1 is
    greedy decoding. When prompt and depth together exceed the context, the prompt's beginning is dropped.
    Raises ConfigError for a width or depth out of range, and ShapeError for a model that is not causal or no
    tokens.
    """
    config = model.config
    check_size(width, depth, config.context)
    if not config.causal or not tokens:
        raise ShapeError("beam search needs a causal model and at least one token to go on from")
    prompt = list(fitting(tokens, depth, config.context))
    cache = KVCache(config, len(prompt) + depth, model.embedding)
    device = model.embedding.device

    logits, ends = model(torch.tensor([prompt], device=device), cache=cache)[:, -1], frozenset(stop)
    nodes: list[Node] = []
    live: list[int | None] = [None]
    for step in range(1, depth + 1):
        made = _expand(nodes, live, logits, step, width, length_penalty, ends, shown or width)
        nodes += made
        rows = {parent: row for row, parent in enumerate(live)}
        going = [node for node in made if node.in_beam and not node.finished]
        going.sort(key=lambda node: (-node.total, rows[node.parent], node.token))
        live = [node.index for node in going]
        if not live or step == depth:
            break
        yield Progress(step, depth)
        cache = cache.branch([rows[node.parent] for node in going])
        ids = torch.tensor([[node.token] for node in going], device=device)  # (branch, 1)
        logits = model(ids, cache=cache)[:, -1]
    beam = Beam(tuple(nodes), 0)
    return Beam(beam.nodes, beam.ended()[0].index)


def check_size(width: int, depth: int, longest: int) -> None:
    """Raises ConfigError for a width or depth out of range; `longest` is what the model can write."""
    if not 1 <= width <= MAX_WIDTH:
        raise ConfigError("width", width, f"must be between 1 and {MAX_WIDTH}")
    most = min(MAX_DEPTH, longest)
    if not 1 <= depth <= most:
        raise ConfigError("depth", depth, f"must be between 1 and {most}: the context holds no more")


def fitting(tokens: Sequence[int], depth: int, context: int) -> Sequence[int]:
    """Returns the end of a prompt to which `depth` tokens can be added before the context is full: the last
    one need not be read.

    >>> fitting([1, 2, 3, 4, 5], 3, 4)
    [4, 5]
    """
    return tokens[-(context - depth + 1) :]


def _expand(
    nodes: list[Node],
    live: Sequence[int | None],
    logits: Tensor,
    step: int,
    width: int,
    penalty: float,
    stop: frozenset[int],
    shown: int,
) -> list[Node]:
    """The children of every living branch that are kept or shown. logits (branch, vocab)."""
    parts = logits.double().cpu().log_softmax(dim=-1)
    before = torch.tensor(
        [0.0 if place is None else nodes[place].total for place in live], dtype=torch.float64
    )
    totals = before[:, None] + parts  # (branch, vocab)
    vocab = totals.shape[1]
    ranked = likeliest_ids(totals.flatten().numpy(), 2 * width).tolist()
    kept: list[int] = []
    living = 0
    for rank, place in enumerate(ranked):
        ends = place % vocab in stop
        if (ends and rank < width) or (not ends and living < width):
            kept.append(place)
            living += not ends
    best = totals.topk(min(shown, vocab), dim=1).indices
    wanted = sorted(
        {*kept, *(row * vocab + token for row, tokens in enumerate(best.tolist()) for token in tokens)}
    )
    chosen = frozenset(kept)
    pairs = torch.stack([parts.flatten()[wanted], totals.flatten()[wanted]], dim=1).tolist()
    made: list[Node] = []
    for place, (log_p, total) in zip(wanted, pairs, strict=True):
        (row, token), stays, index = divmod(place, vocab), place in chosen, len(nodes) + len(made)
        scores = log_p, total, total / step**penalty
        made.append(Node(index, live[row], token, step, *scores, stays, stays and token in stop))
    return made


def sampled(
    model: Transformer,
    tokens: Sequence[int],
    length: int,
    sampling: SampleConfig,
    ends: Collection[int] = (),
    held: Held | None = None,
) -> tuple[tuple[int, ...], float]:
    """Returns (a sample that is over with the first of `ends`, its log-probability at temperature 1). `held`
    is what an earlier text read, as in `engine.sample.generate.steps`.
    """
    ids: list[int] = []
    total = 0.0
    for record in steps(model, tokens, length, sampling, held=held):
        ids.append(record.token)
        total += float(record.logits.double().log_softmax(-1)[record.token])
        if record.token in ends:
            break
    return tuple(ids), total
