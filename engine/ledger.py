"""What a model costs, from its configuration alone: nothing is built to count it."""

from __future__ import annotations

from functools import lru_cache
from typing import cast

from engine.config import ModelConfig


def component_parameters(config: ModelConfig) -> dict[str, int]:
    """Parameters of each part of the whole model, in the order in which data meets the parts. The values sum to the total.

    `norm1`, `attention`, `norm2` and `feedforward` are summed over all blocks. A part that has none, or is absent, counts 0;
    so does a tied `unembedding`, whose matrix is the embedding's (Press & Wolf 2017).
    Raises ConfigError when the configuration cannot be built.
    """
    c = config.validate().resolved()
    d, d_ff = c.d_model, cast(int, c.d_ff)
    queries, keys = c.n_heads * cast(int, c.d_head), cast(int, c.n_kv_heads) * cast(int, c.d_head)
    bias = int(c.attention_bias)
    # Rows that read the stream: Q, K and V; a shared Q = K and V; or no matrix at all.
    read = {"attention": queries + 2 * keys, "shared_qk": 2 * queries}.get(c.mixer, 0)
    write = queries * d + bias * d if read and c.output_projection else 0
    hidden = {"none": 0, "swiglu": 2 * d_ff, "geglu": 2 * d_ff}.get(c.ffn, d_ff)
    norm = {"none": 0, "rmsnorm": int(c.norm_gain)}.get(c.norm, c.norm_gain + c.norm_bias) * d
    return {
        "embedding": c.vocab_size * d,
        "position": {"learned": c.context * d, "t5": 32 * c.n_heads}.get(c.position, 0),
        "norm1": c.n_layers * norm * (c.mixer != "none"),
        "attention": c.n_layers * (read * (d + bias) + write),
        "norm2": c.n_layers * norm * (c.ffn != "none"),
        "feedforward": c.n_layers * (hidden * (d + c.ffn_bias) + (d_ff * d + c.ffn_bias * d if hidden else 0)),
        "norm_final": 0 if c.wiring == "post" else norm,
        "unembedding": 0 if c.tie_embeddings else c.vocab_size * d,
    }


def parameter_formula(config: ModelConfig) -> int:
    """The number of parameters in closed form, from the configuration alone. Tests hold it against the model itself."""
    return sum(component_parameters(config).values())


@lru_cache(maxsize=64)
def shape_trace(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The shape of every activation for one sequence of `context` tokens, by its name in the vocabulary.

    Recorded from a forward pass on the meta device, which has shapes but no memory. All blocks are alike, so only one
    is run, and its names lose their `blocks.0.`. Raises ConfigError when the configuration cannot be built.
    """
    from dataclasses import replace

    import torch

    from engine.model import build
    from engine.probe import Recorder

    recorder = Recorder()
    build(replace(config.validate(), n_layers=1), device="meta")(torch.empty(1, config.context, dtype=torch.int64, device="meta"), recorder)
    return {name.rpartition(".")[2]: shape for name, shape in recorder.shapes().items()}
