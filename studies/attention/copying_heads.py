"""Heads that copy what they look at: the name movers of Wang et al. 2023, section 3.1.

Such a head looks from the last token at an earlier one, and what it writes predicts that token.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model import Transformer
from engine.parts.attention import by_heads
from engine.recording import Recording

TOP = 5  # likeliest tokens among which a copied one is (Wang et al. 2023, appendix: the copy score)
LEAST = 0.01  # of a head's weight: what gets less is not asked about
FIRST_CHUNK = 1024  # tokens of the vocabulary; each further piece is four times as large


def among(vocab: int) -> int:
    """Returns the rank that a copied token must have: TOP, at most a hundredth of the vocabulary.

    >>> among(49_152), among(300), among(65)
    (5, 3, 1)
    """
    return min(TOP, max(1, vocab // 100))


@torch.inference_mode()
def name_mover_scores(model: Transformer, recording: Recording) -> np.ndarray | None:
    """Returns the share of the last token's weight on earlier tokens that the head copies: (layer, head).

    A head copies a token when v W_O of that position alone, through the final norm and the unembedding, has
    the token among its `among` largest logits. Positions with less than LEAST of the weight count as not
    copied. NaN for one token; None without a mixer, and for an encoder.
    """
    config, last = recording.config, len(recording.ids) - 1
    if not config.causal or not model.parts.mixer(config).present:
        return None
    if not last:
        return np.full((config.n_layers, config.n_heads), np.nan)
    weights = recording.stacked("pattern")[:, :, last, :last]  # (layer, head, key)
    layer, head, key = np.nonzero(weights >= LEAST)
    here = (layer == i for i in range(config.n_layers))  # sorted by layer, so that they can be joined
    written = torch.cat([_written(model, recording, i, head[at], key[at]) for i, at in enumerate(here)])
    tokens = torch.tensor(recording.ids)[torch.from_numpy(key)].to(written.device)
    copied = in_top(model.norm_final(written[None])[0], model.output_matrix, tokens, among(config.vocab_size))
    result = np.zeros(weights.shape[:2])
    np.add.at(result, (layer, head), np.where(copied.cpu().numpy(), weights[layer, head, key], 0.0))
    return result


def _written(
    model: Transformer, recording: Recording, layer: int, head: np.ndarray, key: np.ndarray
) -> Tensor:
    """Returns the output of heads (n,) of a layer that look at keys (n,) alone: (n, d_model)."""
    mixer, like = by_heads(model.blocks[layer].mixer), next(model.parameters())
    v = torch.tensor(recording[f"blocks.{layer}.v"], dtype=like.dtype, device=like.device)
    each = mixer.writes(v.repeat_interleave(mixer.n_heads // mixer.n_kv_heads, 0))  # (head, key, d_model)
    return each[torch.from_numpy(head), torch.from_numpy(key)]


def in_top(x: Tensor, matrix: Tensor, tokens: Tensor, top: int) -> Tensor:
    """True where the logits matrix x have a token among their `top` largest: x (n, d_model), matrix (vocab,
    d_model), tokens (n,) -> (n,). Equal logits count as larger, so a zero output copies nothing. The
    vocabulary is read in pieces; rows with `top` larger ones are done.
    """
    own = (x * matrix[tokens]).sum(-1)
    larger = torch.zeros_like(tokens)
    start, size = 0, FIRST_CHUNK
    while start < len(matrix):
        asked = torch.nonzero(larger < top)[:, 0]
        logits = F.linear(x[asked], matrix[start : start + size])
        mine = tokens[asked] - start
        inside = (mine >= 0) & (mine < logits.shape[1])
        logits[inside, mine[inside]] = -torch.inf  # rounded otherwise, it could be larger than itself
        larger[asked] += (logits >= own[asked, None]).sum(-1)
        start, size = start + size, 4 * size
    return larger < top
