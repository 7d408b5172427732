"""The map of an encoder-decoder while it writes: what it shows of each step."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from engine.data.pairs import source_ids
from engine.data.tokenizers.pairs import PairTokenizer
from engine.measure.home.living_map import size
from engine.probe import Recorder
from engine.sample.pairs import pair_steps
from engine.seq2seq import Seq2Seq

MOST = 3  # guesses of each step


@dataclass(frozen=True, eq=False)
class Writing:
    """A source and what was written for it: step i writes symbol i, after begin and the symbols before. Sizes
    are root mean squares, of each depth: before the first block, then after each.
    """

    source: tuple[str, ...]
    read: tuple[str, ...]  # of the decoder: begin, and all that was written but the last
    written: tuple[str, ...]
    text: str
    source_sizes: np.ndarray = field(repr=False)  # (depth,), a mean over the source
    sizes: np.ndarray = field(repr=False)  # (depth, step)
    cross: np.ndarray = field(repr=False)  # (layer, head, step, source)
    guesses: np.ndarray = field(repr=False)  # (step, guess), ids, likeliest first
    chances: np.ndarray = field(repr=False)  # (step, guess)
    memory: tuple[int, int]  # (source, d_model)

    def looked(self, step: int) -> tuple[int, float]:
        """Returns the source position that a step looks at most, and its weight: the mean of all heads."""
        mean = self.cross[:, :, step].mean((0, 1))
        return int(mean.argmax()), float(mean.max())


@torch.inference_mode()
def writing(model: Seq2Seq, tokenizer: PairTokenizer, text: str) -> Writing:
    """Reads a text and writes the likeliest target. All steps are looked at in one pass, which the causal
    mask allows. Raises CorpusError for an empty text, TokenizerError for unknown symbols, ShapeError for too
    many.
    """
    ids = source_ids(text, tokenizer)
    wrote = [drawn.token for drawn in pair_steps(model, ids)]
    begun = [model.config.begin, *wrote[:-1]]
    recorder = Recorder()
    logits = model(torch.tensor([ids]), torch.tensor([begun]), recorder)[0].float()
    chances, guesses = logits.softmax(-1).topk(min(MOST, logits.shape[-1]), dim=-1)

    def stream(tower: str, layers: int) -> np.ndarray:
        names = ["blocks.0.resid_pre", *(f"blocks.{i}.resid_post" for i in range(layers))]
        return size(np.stack([recorder[f"{tower}.{name}"][0].float().numpy() for name in names]))

    crossed = [recorder[f"decoder.blocks.{i}.cross_pattern"][0] for i in range(model.config.decoder.n_layers)]
    return Writing(
        tokenizer.shown(ids),
        tokenizer.shown(begun),
        tokenizer.shown(wrote),
        tokenizer.decode(wrote),
        stream("encoder", model.config.encoder.n_layers).mean(-1),
        stream("decoder", model.config.decoder.n_layers),
        torch.stack(crossed).float().numpy(),
        guesses.numpy(),
        chances.numpy(),
        (len(ids), model.config.encoder.d_model),
    )
