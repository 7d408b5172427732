"""Questions that a race answers: the same training but for one difference. Small models, as everywhere here:
the answers hold for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from engine.config import Balance, Init, ModelConfig, TrainConfig, Wiring


@dataclass(frozen=True)
class Contestant:
    """One side of a question."""

    title: str
    model: ModelConfig
    train: TrainConfig


@dataclass(frozen=True)
class Question:
    """A question: `title` on the button, `asks` in full. Each contestant is trained with all `seeds`."""

    title: str
    asks: str
    contestants: tuple[Contestant, ...]
    seeds: tuple[int, ...] = (0, 1, 2)


_MODEL = ModelConfig(
    vocab_size=65, context=64, d_model=64, n_layers=2, n_heads=4, position="rope", ffn="relu"
)
_TRAIN = TrainConfig(
    steps=300,
    batch_size=16,
    learning_rate=5e-3,
    weight_decay=0.0,
    schedule="linear",
    min_lr_fraction=0.0,
    warmup_steps=10,
    eval_every=25,
    eval_tokens=4096,
    sample_every=150,
    snapshot_every=150,
)
# Constant rate and few steps: what is asked is how a training begins.
_BEGINNING = replace(_TRAIN, steps=150, batch_size=8, schedule="constant", warmup_steps=0)
WARM_UP = 100
NORM_DEPTHS = (4, 12, 24)


def _heads() -> Iterator[Contestant]:
    for n in (1, 2, 4, 8, 16):
        yield Contestant(f"{n} head{'s' if n > 1 else ''}", replace(_MODEL, n_heads=n), _TRAIN)


def _widths() -> Iterator[Contestant]:
    for times in (1, 2, 4, 8):
        model = replace(_MODEL, d_ff=times * _MODEL.d_model)
        yield Contestant(f"d_ff {times}x", model, _TRAIN)


def _shapes() -> Iterator[Contestant]:
    """12 L d^2 is 196,608 for all three."""
    for layers, width in ((1, 128), (4, 64), (16, 32)):
        model = replace(_MODEL, n_layers=layers, d_model=width)
        title = f"{layers} block{'s' if layers > 1 else ''}, {width} wide"
        yield Contestant(title, model, _TRAIN)


def _norms(depth: int) -> Iterator[Contestant]:
    kinds: tuple[Wiring, ...] = ("pre", "post")
    for wiring in kinds:
        for warm in (0, WARM_UP):
            model = replace(_MODEL, n_layers=depth, wiring=wiring)
            train = replace(_BEGINNING, warmup_steps=warm, learning_rate=3e-3)
            yield Contestant(f"{wiring}-norm{', warm-up' if warm else ''}", model, train)


def _cuts() -> Iterator[Contestant]:
    for cut, title in (("char", "characters"), ("bpe:512", "512 tokens"), ("bpe:1024", "1,024 tokens")):
        size = 65 if cut == "char" else int(cut.partition(":")[2])
        train = replace(_TRAIN, tokenizer=cut)
        yield Contestant(title, replace(_MODEL, vocab_size=size), train)


def _inits() -> Iterator[Contestant]:
    """Eight blocks without norms, which would hide most of the difference. Not tied: tables at 1 would make
    the first logits as large as sqrt(d_model).
    """
    inits: dict[Init, str] = {
        "scaled": "0.02, scaled",
        "plain": "0.02",
        "fan_in": "1/√inputs",
        "normal": "tables N(0, 1)",
    }
    for init, title in inits.items():
        model = replace(_MODEL, n_layers=8, norm="none", tie_embeddings=False)
        yield Contestant(title, model, replace(_TRAIN, learning_rate=3e-3, warmup_steps=50, init=init))


def _parts() -> Iterator[Contestant]:
    """The block of GPT-2, and one part of a modern block at a time in it. Weights of 1/sqrt(inputs): at 0.02
    a gated network of this width, a product of two small numbers, hardly writes at first.
    """
    block, train = replace(_MODEL, position="learned", ffn="gelu"), replace(_TRAIN, init="fan_in")
    yield Contestant("GPT-2's parts", block, train)
    yield Contestant("RoPE", replace(block, position="rope"), train)
    yield Contestant("RMSNorm", replace(block, norm="rmsnorm"), train)
    yield Contestant("SwiGLU", replace(block, ffn="swiglu"), train)
    yield Contestant("QK-norm", replace(block, qk_norm=True), train)


def _experts() -> Iterator[Contestant]:
    """One network, and 8 experts of which a token meets as much; not balanced, and in both ways."""
    yield Contestant("One network", _MODEL, _TRAIN)
    kinds: dict[Balance, str] = {"none": "8 experts", "loss": "8 experts, loss", "bias": "8 experts, bias"}
    for balance, title in kinds.items():
        model = replace(_MODEL, n_experts=8, active_experts=2, d_ff=2 * _MODEL.d_model, balance=balance)
        yield Contestant(title, model, _TRAIN)


QUESTIONS: dict[str, Question] = {
    "heads": Question("Heads", "How many heads, at the same width?", tuple(_heads())),
    "widths": Question("Feed-forward", "How wide should the feed-forward network be?", tuple(_widths())),
    "shapes": Question(
        "Deep or wide", "Deep or wide, with equal parameters in the blocks?", tuple(_shapes())
    ),
    **{
        f"norms-{depth}": Question(
            f"Norm, {depth} blocks",
            f"Pre-norm or post-norm, with and without warm-up, at {depth} blocks?",
            tuple(_norms(depth)),
            seeds=(0, 1, 2, 3, 4),
        )
        for depth in NORM_DEPTHS
    },
    "parts": Question("Modern parts", "What does each modern part buy you on its own?", tuple(_parts())),
    "experts": Question(
        "Experts", "What do experts add to the same work, balanced or not?", tuple(_experts())
    ),
    "cuts": Question("Characters or tokens", "Characters or tokens, in bits per character?", tuple(_cuts())),
    "inits": Question("Initialisation", "How should the weights be initialised?", tuple(_inits())),
}
