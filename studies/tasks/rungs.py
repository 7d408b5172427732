"""The ladder: from a bigram model of letters to a modern Transformer, one idea a rung.

The rungs up to `block-8`, their sizes in LECTURE and the published losses are a lecture's; the rungs above
carry on to what models are made of today.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from engine.config import ModelConfig, TrainConfig

DEPTHS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Rung:
    """One idea more than the rung `below` (None: the lowest). `changes` are all fields in which the two
    differ, `parts` the name of the model's parts (engine.parts.registry.PARTS). `idea` explains what is new
    to somebody who heard one lecture.
    """

    title: str
    idea: str
    model: ModelConfig
    below: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    parts: str = "healthy"

    def at(self, vocab_size: int, context: int, d_model: int) -> ModelConfig:
        """Returns the same rung with other sizes."""
        return replace(self.model, vocab_size=vocab_size, context=context, d_model=d_model)


_LAST = Rung(
    "Bigram",
    "The last character's row predicts the next one: a bigram model, no more.",
    ModelConfig(
        context=64,
        d_model=64,
        n_layers=1,
        n_heads=1,
        norm="none",
        wiring="none",
        ffn="none",
        position="none",
        mixer="none",
        output_projection=False,
        tie_embeddings=False,
    ),
)


def _ladder() -> dict[str, Rung]:
    rungs = {"last": _LAST}

    def step(
        name: str, below: str, title: str, idea: str, parts: str | None = None, **changes: object
    ) -> None:
        under = rungs[below]
        model = replace(under.model, **changes)  # type: ignore[arg-type]
        rungs[name] = Rung(title, idea, model, below, changes, under.parts if parts is None else parts)

    step("mean", "last", "Average", "The mean of all characters so far.", mixer="mean")
    step(
        "similarity",
        "mean",
        "Raw similarity",
        "A character attends more to those with similar vectors.",
        mixer="similarity",
    )
    step(
        "one-matrix",
        "similarity",
        "One matrix",
        "Vectors are multiplied by one learned matrix before they are compared.",
        "raw_values",
        mixer="shared_qk",
    )
    step(
        "two-matrices",
        "one-matrix",
        "Queries and keys",
        "Two matrices: what a character looks for, and what it offers.",
        mixer="attention",
    )
    step("values", "two-matrices", "Values", "A third matrix, W_V, makes the values.", "healthy")
    step(
        "attention-1",
        "values",
        "Attention ×1",
        "Attention's output is added to the character's vector: a residual.",
        wiring="pre",
    )
    for fewer, depth in pairwise(DEPTHS):
        idea = f"{depth} layers of attention instead of {fewer}, each reading what the one below has written."
        title = f"Attention ×{depth}"
        step(f"attention-{depth}", f"attention-{fewer}", title, idea, n_layers=depth)
    for depth in DEPTHS:
        idea = "After each attention layer, a feed-forward network transforms every position on its own."
        title = f"Full block ×{depth}"
        step(f"block-{depth}", f"attention-{depth}", title, idea, ffn="relu")
    step(
        "output",
        "block-4",
        "Output matrix",
        "W_O transforms the output before it is added.",
        output_projection=True,
    )
    step(
        "positions",
        "output",
        "Positions",
        "Sines and cosines encode each character's position.",
        position="sinusoidal",
    )
    step("heads", "positions", "Four heads", "Four narrow heads in parallel, not one wide head.", n_heads=4)
    step("norm", "heads", "Norm", "Each sublayer reads normalised vectors.", norm="layernorm")
    step(
        "modern",
        "norm",
        "Modern parts",
        "RoPE, RMSNorm, SwiGLU and QK-norm: today's standard parts.",
        position="rope",
        norm="rmsnorm",
        ffn="swiglu",
        qk_norm=True,
    )
    step(
        "experts",
        "modern",
        "Experts",
        "Two of eight small feed-forward networks read each character, and a ninth reads all.",
        n_experts=8,
        shared_experts=1,
        d_ff=59,
        balance="bias",
    )
    return rungs


LADDER: dict[str, Rung] = _ladder()


# A race of rungs: small enough that four of them take half a minute on two slow cores, long enough that every
# rung pays. Weights of 1/sqrt(inputs): with tables of N(0, 1) and no norms, eight layers diverge.
RACE_TRAINING = TrainConfig(
    steps=500,
    batch_size=16,
    learning_rate=3e-3,
    weight_decay=0.0,
    schedule="linear",
    min_lr_fraction=0.0,
    warmup_steps=50,
    init="fan_in",
    eval_every=50,
    eval_tokens=4096,
    sample_every=100,
    snapshot_every=100,
)
# Three times as many steps of twice the batch: minutes for the deep rungs.
LONG_TRAINING = replace(
    RACE_TRAINING,
    steps=1_500,
    batch_size=32,
    learning_rate=2e-3,
    warmup_steps=150,
    eval_every=150,
    sample_every=500,
    snapshot_every=500,
)
MOST_STEPS = (
    5_000  # where the clock is the budget: more than a rung does in it, as many as are allowed everywhere
)
FIRST_FOUR = ("mean", "last", "block-4", "positions")


@dataclass(frozen=True)
class Published:
    """One training of the lecture: its rung, its `loss` on the text that it trains on (nats per letter; None
    where none was given), `about` for a loss read off a picture, and the parameters that were counted.
    """

    rung: Rung
    loss: float | None = None
    about: bool = False
    parameters: int | None = None


def _lecture(name: str, **said: Any) -> Published:
    rung = LADDER[name]
    return Published(replace(rung, model=rung.at(65, 128, 256)), **said)


_SHARED = replace(
    LADDER["values"],
    title="One matrix, with values",
    idea="One matrix for queries and keys, another for values.",
    model=replace(LADDER["values"].model, mixer="shared_qk"),
    below="similarity",
    changes={"mixer": "shared_qk"},
)

# By what a step costs: in this order they are trained.
LECTURE: dict[str, Published] = {
    "last": _lecture("last", loss=2.45, parameters=33_280),
    "mean": _lecture("mean", parameters=33_280),
    "similarity": _lecture("similarity"),
    "shared": Published(
        replace(_SHARED, model=_SHARED.at(65, 128, 256)), loss=2.4, about=True, parameters=164_352
    ),
    "values": _lecture("values", loss=2.4, about=True, parameters=229_888),
    "attention-1": _lecture("attention-1", parameters=229_888),
    "attention-2": _lecture("attention-2", parameters=426_496),
    "block-1": _lecture("block-1"),
    "attention-4": _lecture("attention-4", loss=1.88, parameters=819_712),
    "block-2": _lecture("block-2", loss=1.63),
    "attention-8": _lecture("attention-8", loss=1.50, parameters=1_606_144),
    "block-4": _lecture("block-4", loss=1.25),
    "block-4-sinusoidal": Published(
        replace(
            LADDER["block-4"],
            title="Full block ×4, positions",
            idea="Sines and cosines encode each character's position.",
            model=replace(LADDER["block-4"].at(65, 128, 256), position="sinusoidal"),
            below="block-4",
            changes={"position": "sinusoidal"},
        )
    ),
    "block-8": _lecture("block-8", loss=0.92),
}

# Adam as it comes (Kingma & Ba 2015: beta 0.9 and 0.999), one rate throughout, tables N(0, 1).
LECTURE_TRAINING = TrainConfig(
    steps=10_000,
    batch_size=64,
    learning_rate=3e-4,
    beta2=0.999,
    weight_decay=0.0,
    grad_clip=0.0,
    schedule="constant",
    warmup_steps=0,
    init="normal",
    seed=1337,
    eval_every=250,
    eval_tokens=32_768,
    sample_every=2500,
    sample_length=300,
    sample_temperature=0.8,
    snapshot_every=250,
)
