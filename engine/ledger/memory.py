"""Bytes that a model takes up when it is used and when it is trained, from its configuration alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.config import GATED, LEARNED_MIXERS, ModelConfig

# Bytes of a number. Four bits are two numbers in a byte; the scales that quantised weights need beside them
# (a few percent) are left out.
DTYPES = {"float32": 4.0, "bfloat16": 2.0, "int8": 1.0, "int4": 0.5}
TRAINED_IN = ("float32", "bfloat16")
GB = 2**30


@dataclass(frozen=True)
class Memory:
    """Bytes. `master` and `moments` are AdamW's: a float32 copy of weights that are kept in fewer bits, and
    two float32 averages a weight (Kingma & Ba 2014; 16 bytes a parameter in all, Rajbhandari et al. 2020).
    `activations` are what backward needs of the forward pass.
    """

    weights: int
    gradients: int
    master: int
    moments: int
    activations: int
    kv_cache: int

    @property
    def optimizer(self) -> int:
        return self.master + self.moments

    @property
    def inference(self) -> int:
        """To write text: the weights, and the keys and values of the text so far."""
        return self.weights + self.kv_cache

    @property
    def training(self) -> int:
        return self.weights + self.gradients + self.optimizer + self.activations


def kv_numbers(c: ModelConfig, encoder: ModelConfig | None = None) -> int:
    """Numbers that a KV cache holds for each token of a sequence: a key and a value for each layer and
    key-value head.

    0 where none can be kept: without a causal mask every later token changes them. With an `encoder` there
    are as many again, for each token that it read. The configuration must be resolved.
    """
    assert c.n_kv_heads is not None and c.d_head is not None
    if c.mixer == "none" or not c.causal:
        return 0
    return c.n_layers * 2 * c.n_kv_heads * c.d_head * (1 if encoder is None else 2)


def activation_numbers(c: ModelConfig, tokens: int) -> dict[str, int]:
    """Numbers that backward needs for each token of a sequence of `tokens`, by component, as this engine
    computes: the inputs of products and nonlinearities, the patterns of attention, the probabilities.
    Dropout's masks are left out. The configuration must be resolved.
    """
    found = dict.fromkeys(("norm", "attention", "feedforward", "output"), 0)
    for component, numbers in _block(c, tokens):
        found[component] += c.n_layers * numbers
    found["norm"] += 0 if c.wiring == "post" else _normed(c)
    found["output"] = c.d_model + c.vocab_size
    return found


def _block(c: ModelConfig, tokens: int) -> Iterator[tuple[str, int]]:
    assert c.n_kv_heads is not None and c.d_head is not None and c.d_ff is not None
    q, kv = c.n_heads * c.d_head, c.n_kv_heads * c.d_head
    if c.mixer != "none":
        read = c.d_model if c.mixer in LEARNED_MIXERS else 0
        written = q if c.mixer in LEARNED_MIXERS and c.output_projection else 0  # the input of W_O
        # A mean's pattern does not depend on x: the gradient of v needs it, and v itself is not needed.
        scored = 0 if c.mixer == "mean" else q + 2 * kv
        if c.qk_norm and c.mixer != "mean":  # what was normalised, and its scale in each head
            scored += (q + 2 * kv if c.mixer == "attention" else q) + c.n_heads + c.n_kv_heads
        yield "norm", _normed(c)
        yield "attention", read + scored + c.n_heads * tokens + written
    if c.ffn != "none":
        shared = c.wiring == "parallel" and c.mixer != "none"  # both norms read the one stream
        # ReLU's slope can be told from what it gives, and its output is W_2's input.
        kept = 4 if c.ffn in GATED else 1 if c.ffn == "relu" else 2
        yield "norm", _normed(c) - (c.d_model if shared and c.norm != "none" else 0)
        yield "feedforward", (0 if shared and c.norm == "none" else c.d_model) + kept * c.d_ff


def _normed(c: ModelConfig) -> int:
    """A norm's input and its statistics; RMSNorm with a gain also keeps what the gain multiplies."""
    if c.norm == "none":
        return 0
    return c.d_model + 2 if c.norm == "layernorm" else (2 if c.norm_gain else 1) * c.d_model + 1
