"""Cards of the norms (`engine.parts.norms`): names, sentences, formulas, parameters and memory."""

from __future__ import annotations

from typing import ClassVar

from engine.config import ResolvedConfig
from studies.costs.cards import BatchShape, Formula, PartCard, SavedForBackward, Weight


class NormCard(PartCard):
    """Card of a norm."""

    name: ClassVar[str]  # in a configuration
    source: ClassVar[str]  # author and year
    reads: ClassVar[tuple[str, ...]] = ("norm_gain", "norm_eps")  # fields of a configuration
    nonlinearity: ClassVar[str] = "division"  # the step that is not linear in x
    # LaTeX of an example without gain and bias: what is measured, with {mean}, {variance}, {rms}; the norm.
    statistics: ClassVar[str]
    bare: ClassVar[str]

    @classmethod
    def formula(cls, config: ResolvedConfig) -> Formula:
        """Returns the norm of x in LaTeX and plain text, with the gain and bias of the configuration."""
        raise NotImplementedError

    @classmethod
    def linear_words(cls, config: ResolvedConfig) -> str:
        """Returns what the norm's `linear_part` does to a vector, to follow "it is"; empty where it changes
        nothing.
        """
        return "multiplied by its gain" if config.norm_gain else ""

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        gain = (Weight("gain g", ("d_model",)),) if config.norm_gain else ()
        return gain + ((Weight("bias b", ("d_model",)),) if config.norm_bias else ())


class LayerNormCard(NormCard):
    name: ClassVar[str] = "layernorm"
    title: ClassVar[str] = "LayerNorm"
    sentence: ClassVar[str] = "Each token's vector is rescaled to mean 0 and variance 1."
    source: ClassVar[str] = "Ba et al. 2016"
    reads: ClassVar[tuple[str, ...]] = ("norm_gain", "norm_bias", "norm_eps")
    statistics: ClassVar[str] = r"\mu &= {mean:g}, \quad \sigma^2 = {variance:g}"
    bare: ClassVar[str] = r"\frac{x - \mu}{\sqrt{\sigma^2}}"

    @classmethod
    def formula(cls, config: ResolvedConfig) -> Formula:
        gain, by = (r"g \odot ", "g · ") if config.norm_gain else ("", "")
        bias, plus = (" + b", " + b") if config.norm_bias else ("", "")
        latex = rf"{gain}\frac{{x - \mu}}{{\sqrt{{\sigma^2 + \epsilon}}}}{bias}"
        return latex, f"{by}(x − mean) / std{plus}"

    @classmethod
    def linear_words(cls, config: ResolvedConfig) -> str:
        return "centred" + (" and multiplied by its gain" if config.norm_gain else "")

    @classmethod
    def saved(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        return SavedForBackward(read=config.d_model, internal=2)  # x, its mean and its spread


class RMSNormCard(NormCard):
    name: ClassVar[str] = "rmsnorm"
    title: ClassVar[str] = "RMSNorm"
    sentence: ClassVar[str] = "Each token's vector is scaled to root-mean-square 1."
    source: ClassVar[str] = "Zhang & Sennrich 2019"
    statistics: ClassVar[str] = r"\text{{rms}} &= \sqrt{{\tfrac1n\textstyle\sum x_i^2}} = {rms:.3f}"
    bare: ClassVar[str] = r"\frac{x}{\text{rms}}"

    @classmethod
    def formula(cls, config: ResolvedConfig) -> Formula:
        gain, by = (r"g \odot ", "g · ") if config.norm_gain else ("", "")
        return rf"{gain}\frac{{x}}{{\sqrt{{\overline{{x^2}} + \epsilon}}}}", f"{by}x / rms(x)"

    @classmethod
    def saved(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        gained = config.d_model if config.norm_gain else 0  # what the gain multiplies
        if run.narrow:  # torch computes it in float32, from a copy of x
            return SavedForBackward(full=config.d_model + 1 + gained)
        return SavedForBackward(read=config.d_model, internal=1 + gained)


class DyTCard(NormCard):
    name: ClassVar[str] = "dyt"
    title: ClassVar[str] = "DyT"
    sentence: ClassVar[str] = (
        "Each number is squashed by tanh(αx) on its own, with a learned α: neither mean nor variance is"
        " measured."
    )
    source: ClassVar[str] = "Zhu et al. 2025"
    reads: ClassVar[tuple[str, ...]] = ("norm_gain", "norm_bias")
    nonlinearity: ClassVar[str] = "tanh"
    statistics: ClassVar[str] = r"\alpha &= 0.5 \text{{ (learned)}}"
    bare: ClassVar[str] = r"&\tanh(\alpha x)\\"

    @classmethod
    def formula(cls, config: ResolvedConfig) -> Formula:
        gain, by = (r"\gamma \odot ", "γ · ") if config.norm_gain else ("", "")
        bias, plus = (r" + \beta", " + β") if config.norm_bias else ("", "")
        return rf"{gain}\tanh(\alpha x){bias}", f"{by}tanh(α · x){plus}"

    @classmethod
    def linear_words(cls, config: ResolvedConfig) -> str:
        return "multiplied by α" + (" and its gain" if config.norm_gain else "")

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        return (Weight("α", (1,)), *super().tensors(config))

    @classmethod
    def saved(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        # x, and its tanh, which is what the next part reads if there is neither gain nor bias.
        changed = config.norm_gain or config.norm_bias
        return SavedForBackward(read=config.d_model, internal=config.d_model if changed else 0)


class NoNormCard(NormCard):
    name: ClassVar[str] = "none"
    title: ClassVar[str] = "No norm"
    sentence: ClassVar[str] = "Each token's vector stays as it is."
    reads: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def formula(cls, config: ResolvedConfig) -> Formula:
        return "x", "x"

    @classmethod
    def linear_words(cls, config: ResolvedConfig) -> str:
        return ""

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        return ()


NORM_CARDS: dict[str, type[NormCard]] = {
    card.name: card for card in (LayerNormCard, RMSNormCard, DyTCard, NoNormCard)
}


def norm_title(name: str, absent: str = "none") -> str:
    """Returns how a norm is called on the screen; `absent` for no norm.

    >>> norm_title("rmsnorm"), norm_title("none", "no norm")
    ('RMSNorm', 'no norm')
    """
    card = NORM_CARDS[name]
    return absent if card is NoNormCard else card.title
