"""Targets from an encoder-decoder: the source is read once, then the target is written token by token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.config import SampleConfig
from engine.errors import ConfigError
from engine.probe import Probe, identity
from engine.sample.generate import Drawn, choose
from engine.sample.stages import uniform
from studies.pairs.dataset import source_ids
from studies.pairs.seq2seq import Memory, Seq2Seq
from studies.pairs.tokenizer import PairTokenizer

if TYPE_CHECKING:
    from engine.parts.cache import KVCache
    from studies.generation.single_row import FastPath

GREEDY = SampleConfig(temperature=0.0)


@torch.inference_mode()
def pair_steps(
    model: Seq2Seq,
    source: Sequence[int] | Memory,
    length: int | None = None,
    sampling: SampleConfig = GREEDY,
    *,
    cached: bool = True,
    probe: Probe = identity,
) -> Iterator[Drawn]:
    """Yields a record for each token that the model writes for one source, its ids or what the encoder made
    of them; `config.end` is the last, at most `length` of them (the decoder's context if None). A record's
    `position` counts from `config.begin`, which stands at 0. `probe` sees every pass of the decoder.

    `cached` computes keys and values once, those of the source too, instead of anew for every token; the
    tokens are the same, but for rounding. The same seed gives the same tokens. Raises ConfigError for
    settings out of range, ShapeError for a source that is empty or too long.
    """
    sampling = sampling.validate()
    room = _room(model, length)
    device = model.embedding.device
    if isinstance(source, Memory):
        memory = source
    else:
        memory = model.encode(torch.tensor([list(source)], dtype=torch.int64, device=device))
    cache = model.cache(memory, room) if cached and model.can_cache else None
    fast = None if cache is None or probe is not identity else _fast_path(model, memory, cache.target)
    seen = [model.config.begin]
    for u in uniform(sampling.seed, room).numpy():
        new = seen if cache is None else seen[cache.length :]
        if fast is None:
            logits = model.decode(torch.tensor([new], device=device), memory, probe, cache)[0, -1]
        else:
            logits = fast.read(seen[-1])
        logits = logits.float().cpu()
        seen.append(choose(logits, sampling, seen, u))
        yield Drawn(seen[-1], len(seen) - 1, 0, len(new), logits)
        if seen[-1] == model.config.end:
            return


def _fast_path(model: Seq2Seq, memory: Memory, cache: KVCache) -> FastPath | None:
    """Returns the fast path for one target, or None where it would compute something else."""
    from studies.generation.single_row import FastPath, Products, is_fast

    if memory.padding.any() or not is_fast(model):
        return None
    return FastPath(model, cache, Products(model.embedding), memory)


def write_pair(model: Seq2Seq, tokenizer: PairTokenizer, source: str, sampling: SampleConfig = GREEDY) -> str:
    """Writes the target of a source. Raises CorpusError, TokenizerError or ShapeError for a bad one."""
    return tokenizer.decode(
        [r.token for r in pair_steps(model, source_ids(source, tokenizer), None, sampling)]
    )


@torch.inference_mode()
def write_targets(
    model: Seq2Seq, sources: Tensor, length: int | None = None, *, cached: bool = True
) -> list[list[int]]:
    """Returns each target's likeliest ids, with the end if reached, for sources (batch, source)."""
    config, room = model.config, _room(model, length)
    memory = model.encode(sources.to(model.embedding.device))
    cache = model.cache(memory, room) if cached and model.can_cache else None
    written = memory.padding.new_full((len(sources), 1), config.begin, dtype=torch.int64)
    over = torch.zeros_like(written[:, 0], dtype=torch.bool)
    for _ in range(room):
        new = written if cache is None else written[:, cache.length :]
        best = model.decode(new, memory, cache=cache)[:, -1].argmax(dim=-1)
        written = torch.cat((written, best.masked_fill(over, config.pad)[:, None]), dim=1)
        over |= best == config.end
        if bool(over.all()):
            break
    rows, end = written[:, 1:].tolist(), config.end
    return [ids[: ids.index(end) + 1] if end in ids else ids for ids in rows]


def _room(model: Seq2Seq, length: int | None) -> int:
    context = model.config.decoder.context
    if length is not None and not 1 <= length <= context:
        raise ConfigError("length", length, f"must be between 1 and {context}: the decoder's context")
    return length or context
