"""Looking into a forward pass, and editing it.

Every interesting tensor of the model passes `x = probe("name", x)`. The default returns `x` untouched;
a `Recorder` keeps a copy; a `Patcher` hands back something else. The probe is an argument of
`forward`, never state on the module, so many readers can share one model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

import torch
from torch import Tensor

from engine.errors import ShapeError, UnknownNameError

Probe = Callable[[str, Tensor], Tensor]

_STREAM = ("batch", "query", "d_model")
_HEADS = ("batch", "head", "query", "d_head")
_KV = ("batch", "kv_head", "key", "d_head")  # of the tokens given, without those that a cache holds
_PATTERN = ("batch", "head", "query", "key")
_HIDDEN = ("batch", "query", "d_ff")

# The axes of every activation, and what it is, in the order in which data meets them. A block's are scoped
# `blocks.3.`.
AXES: dict[str, tuple[str, ...]] = {
    "tokens": ("batch", "query"),  # ids
    "embed": _STREAM,  # rows of the embedding
    "pos_embed": ("query", "d_model"),  # the position scheme's table
    "type_embed": _STREAM,  # which of two texts a token belongs to
    "norm_embed": _STREAM,  # the sum of these, normalised (BERT)
    "resid_pre": _STREAM,  # the residual stream before a block
    "norm1": _STREAM,  # normalised for attention
    "q": _HEADS,  # queries
    "k": _KV,  # keys
    "v": _KV,  # values
    "q_rot": _HEADS,  # queries after the rotation (RoPE)
    "k_rot": _KV,  # keys after the rotation
    "scores": _PATTERN,  # q k^T, scaled
    "masked_scores": _PATTERN,  # with -inf where nothing may be seen
    "pattern": _PATTERN,  # attention weights: softmax of them
    "z_gate": _HEADS,  # what share of each number of z passes (gated attention)
    "z": _HEADS,  # values summed by the pattern
    "attn_out": _STREAM,  # what attention adds to the stream
    # The stream between attention and feed-forward network: before norm1 in post-norm, absent in parallel
    # blocks.
    "resid_mid": _STREAM,
    # A decoder's second attention, whose keys are the positions of the source: studies.pairs.seq2seq.
    "cross_norm": _STREAM,  # as above, for cross-attention
    "cross_q": _HEADS,
    "cross_k": _KV,
    "cross_v": _KV,
    "cross_q_rot": _HEADS,
    "cross_k_rot": _KV,
    "cross_scores": _PATTERN,
    "cross_masked_scores": _PATTERN,
    "cross_pattern": _PATTERN,
    "cross_z": _HEADS,
    "cross_out": _STREAM,
    "cross_resid": _STREAM,  # the stream after cross-attention
    "norm2": _STREAM,  # normalised for the feed-forward network
    "router": ("batch", "query", "expert"),  # logits of the experts of a mixture
    "routing": ("batch", "query", "expert"),  # their weights, 0 for those that are not chosen
    "ffn_pre": _HIDDEN,  # neurons before the activation function
    "ffn_gate": _HIDDEN,  # the gate before it (SwiGLU, GeGLU)
    "ffn_post": _HIDDEN,  # neurons after it
    "ffn_out": _STREAM,  # what the feed-forward network adds to the stream
    "resid_post": _STREAM,  # the stream after a block
    "norm_final": _STREAM,  # the stream after the last norm
    "out_pre": _STREAM,  # BERT's output head: its layer
    "out_post": _STREAM,  # after its activation function
    "norm_out": _STREAM,  # after its norm
    "logits": ("batch", "query", "vocab"),  # scores of the next token before softmax
    "pooled": ("batch", "d_model"),  # a classifier's vector of a whole text
    "label_logits": ("batch", "label"),  # scores of its labels
}


NAME = re.compile(r"(?:(?:encoder|decoder)\.)?(?:blocks\.\d+\.)?(\w+)")  # of an activation, scoped or bare


def identity(name: str, x: Tensor) -> Tensor:
    """Returns x: the default probe looks at nothing and changes nothing."""
    return x


def scoped(probe: Probe, prefix: str) -> Probe:
    """Returns `probe` with `prefix` put before every name; the identity stays the identity, and free."""
    if probe is identity:
        return identity
    return lambda name, x: probe(prefix + name, x)


def crossing(probe: Probe) -> Probe:
    """Returns `probe` under the names of a cross-attention: `cross_q` for q, `cross_out` for its output."""
    if probe is identity:
        return identity
    return lambda name, x: probe("cross_out" if name == "attn_out" else f"cross_{name}", x)


def axes_of(name: str) -> tuple[str, ...]:
    """Returns the axes of an activation, scoped or not.

    >>> axes_of("blocks.3.pattern")
    ('batch', 'head', 'query', 'key')
    """
    return AXES[name.rpartition(".")[2]]


def check_name(name: str) -> None:
    """Raises UnknownNameError for a name, scoped or bare, that no activation of any model has."""
    match = NAME.fullmatch(name)
    if match is None or match[1] not in AXES:
        scope = "blocks.0." if "." in name else ""
        raise UnknownNameError("activation", name, [scope + each for each in AXES])


class Recorder:
    """A probe that keeps a detached copy of every tensor it is shown, in order, by name.

    `only` limits it to some names (scoped or bare). On the meta device the copies hold shapes but no
    memory, so a model of any size can be traced. Raises ShapeError when a tensor's rank is not that of AXES,
    UnknownNameError for a name in `only` that no activation has.
    """

    def __init__(self, only: Collection[str] | None = None) -> None:
        self.only = None if only is None else {only} if isinstance(only, str) else set(only)
        for name in self.only or ():
            check_name(name)
        self.tensors: dict[str, Tensor] = {}
        self.passed: list[str] = []  # every name that came, recorded or not

    def __call__(self, name: str, x: Tensor) -> Tensor:
        axes = axes_of(name)
        self.passed.append(name)
        if x.dim() != len(axes):
            raise ShapeError(f"{name} has shape {tuple(x.shape)}, but its axes are ({', '.join(axes)})")
        if self.only is None or name in self.only or name.rpartition(".")[2] in self.only:
            self.tensors[name] = x.detach().clone()
        return x

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Returns name -> shape, in the order of the forward pass."""
        return {name: tuple(x.shape) for name, x in self.tensors.items()}


class Patcher:
    """A probe that replaces activations: `edits` maps a full name to a function of the tensor.

    Head 1 of the third block ablated:

        def off(z):  # (batch, head, query, d_head)
            return z.index_fill(1, torch.tensor(1), 0.0)

        model(tokens, Patcher({"blocks.2.z": off}))

    `then` is a second probe which sees the tensors after the edit. `untouched` are the names that have not
    come yet: with a bare name, such as `z`, nothing is replaced (`record` refuses that). Raises ShapeError
    when an edit changes a shape, UnknownNameError for a name that no activation has.
    """

    def __init__(self, edits: Mapping[str, Callable[[Tensor], Tensor]], then: Probe = identity) -> None:
        for name in edits:
            check_name(name)
        self.edits, self.then, self.untouched = edits, then, set(edits)

    def __call__(self, name: str, x: Tensor) -> Tensor:
        edit = self.edits.get(name)
        if edit is not None:
            self.untouched.discard(name)
            edited = edit(x)
            if not isinstance(edited, torch.Tensor) or edited.shape != x.shape:
                raise ShapeError(f"the edit of {name} must return a tensor of shape {tuple(x.shape)}")
            x = edited
        return self.then(name, x)
