"""Cards of the position schemes (`engine.parts.positions`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from engine.config import ResolvedConfig
from studies.costs.cards import Formula, PartCard, Weight


class PositionCard(PartCard):
    """Card of a position scheme."""

    title: ClassVar[str] = "Position"
    short: ClassVar[str] = ""  # two or three words, for a box that is small
    off: ClassVar[str] = "nothing is added for the position, and nothing rotated"  # when it is switched off

    @classmethod
    def turned(cls, inner: Formula, config: ResolvedConfig) -> Formula:
        """Returns the formula of queries or keys, once they are turned."""
        return inner

    @classmethod
    def biased(cls, scores: Formula, config: ResolvedConfig) -> Formula:
        """Returns the formula of the scores with the bias that is added to them."""
        return scores

    @classmethod
    def head_label(cls, head: int, bias: Sequence[float]) -> str:
        """Returns a head's label for a chart, with the number that sets its `bias` on distances 0, 1, ..."""
        return f"head {head}"


class NoPositionCard(PositionCard):
    title: ClassVar[str] = "None"
    off: ClassVar[str] = "this model has none"


class SinusoidalCard(PositionCard):
    short: ClassVar[str] = "sine waves"
    sentence: ClassVar[str] = (
        "Fixed sine and cosine waves of many lengths are added to the embeddings: every position gets a"
        " pattern of its own, and nothing has to be learned."
    )
    off: ClassVar[str] = "the sine waves are not added"

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        latex = r"p_{t,2i} = \sin\frac{t}{10000^{2i/d}},\; p_{t,2i+1} = \cos\frac{t}{10000^{2i/d}}"
        return {"pos_embed": (latex, "sines and cosines of the position")}


class LearnedCard(PositionCard):
    short: ClassVar[str] = "learned table"
    sentence: ClassVar[str] = (
        "A learned vector for each position is added to the token's vector. The model cannot read past"
        " the table's last row."
    )
    off: ClassVar[str] = "the learned table is not added"

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        return (Weight("position table P", ("context", "d_model")),)

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        return {"pos_embed": (r"p_t = P[t]", "row t of the position table P")}


class RopeCard(PositionCard):
    title: ClassVar[str] = "RoPE: rotates q and k"
    sentence: ClassVar[str] = (
        "Queries and keys are rotated by an angle that grows with their position, so a score depends only on"
        " how far apart two tokens are."
    )
    off: ClassVar[str] = "q and k are not rotated"

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        latex = r"\cos(t\,\theta_i),\ \sin(t\,\theta_i)"
        return {"position": (latex, "cosines and sines that rotate q and k")}

    @classmethod
    def turned(cls, inner: Formula, config: ResolvedConfig) -> Formula:
        part, width = "", "d_{head}"
        if config.rope_fraction < 1:
            part = f", the first {config.d_rotary} of {config.d_head} dimensions"
            width = f"{config.d_rotary}"
        latex = rf"R(t\,\theta)\,{inner[0]},\quad \theta_i = {config.rope_theta:g}^{{-2i/{width}}}"
        return latex, f"{inner[1]}, its pairs rotated by position × frequency{part}"


class AlibiCard(PositionCard):
    title: ClassVar[str] = "ALiBi: bias on scores"
    sentence: ClassVar[str] = (
        "Each head subtracts a fixed amount per step of distance from its scores: far tokens have to shout to"
        " be heard."
    )
    off: ClassVar[str] = "the penalty for distance is removed"

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        return {"position": (r"-m_h\,|i - j|", "− slope · distance, for each head")}

    @classmethod
    def biased(cls, scores: Formula, config: ResolvedConfig) -> Formula:
        return scores[0] + r" - m_h\,|i - j|", scores[1] + " − slope · distance"

    @classmethod
    def head_label(cls, head: int, bias: Sequence[float]) -> str:
        return f"head {head}, slope {bias[0] - bias[1]:.4g}"


class T5BiasCard(PositionCard):
    title: ClassVar[str] = "T5: bias on scores"
    sentence: ClassVar[str] = (
        "Each head adds a learned number for the distance between two tokens; large distances share a bucket."
    )
    off: ClassVar[str] = "the learned distance biases are removed"
    buckets: ClassVar[int] = 32  # T5's own

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        return (Weight("bias for each distance and head", (cls.buckets, "n_heads")),)

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        return {"position": (r"b_h(\mathrm{bucket}(i - j))", "a learned number for each distance")}

    @classmethod
    def biased(cls, scores: Formula, config: ResolvedConfig) -> Formula:
        return scores[0] + r" + b_h(i - j)", scores[1] + " + bias for the distance"
