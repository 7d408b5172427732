"""The card of each part, a plain table. A class without a row has that of the class it is made from."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, overload

from engine.parts import attention, blocks, experts, feedforward, latent, norms, output, positions
from studies.costs.cards import blocks as block_cards
from studies.costs.cards import feedforward as feedforward_cards
from studies.costs.cards import mixers as mixer_cards
from studies.costs.cards import norms as norm_cards
from studies.costs.cards import output as output_cards
from studies.costs.cards import positions as position_cards

CARDS: dict[type, Any] = {
    norms.LayerNorm: norm_cards.LayerNormCard,
    norms.RMSNorm: norm_cards.RMSNormCard,
    norms.DyT: norm_cards.DyTCard,
    norms.NoNorm: norm_cards.NoNormCard,
    positions.NoPosition: position_cards.NoPositionCard,
    positions.Sinusoidal: position_cards.SinusoidalCard,
    positions.Learned: position_cards.LearnedCard,
    positions.Rope: position_cards.RopeCard,
    positions.Alibi: position_cards.AlibiCard,
    positions.T5Bias: position_cards.T5BiasCard,
    attention.Mixer: mixer_cards.MixerCard,
    attention.HeadMixer: mixer_cards.HeadMixerCard,
    attention.Attention: mixer_cards.AttentionCard,
    attention.Sinks: mixer_cards.SinksCard,
    attention.Gated: mixer_cards.GatedAttentionCard,
    latent.LatentAttention: mixer_cards.LatentCard,
    attention.SharedQK: mixer_cards.SharedQKCard,
    attention.Similarity: mixer_cards.SimilarityCard,
    attention.Mean: mixer_cards.MeanCard,
    attention.NoMixer: mixer_cards.NoMixerCard,
    feedforward.FeedForward: feedforward_cards.PlainCard,
    feedforward.GatedFeedForward: feedforward_cards.GatedCard,
    feedforward.NoFeedForward: feedforward_cards.NoFeedForwardCard,
    feedforward.Relu: feedforward_cards.ReluCard,
    feedforward.SquaredRelu: feedforward_cards.SquaredReluCard,
    feedforward.Gelu: feedforward_cards.GeluCard,
    feedforward.GeluTanh: feedforward_cards.GeluTanhCard,
    feedforward.SwiGlu: feedforward_cards.SwiGluCard,
    feedforward.ClampedSwiGlu: feedforward_cards.ClampedSwiGluCard,
    feedforward.GeGlu: feedforward_cards.GeGluCard,
    feedforward.GeGluTanh: feedforward_cards.GeGluTanhCard,
    blocks.Block: block_cards.BlockCard,
    blocks.PreNormBlock: block_cards.PreNormBlockCard,
    blocks.PostNormBlock: block_cards.PostNormBlockCard,
    blocks.ParallelBlock: block_cards.ParallelBlockCard,
    blocks.NoResidualBlock: block_cards.NoResidualBlockCard,
    blocks.DecoderBlock: block_cards.DecoderBlockCard,
    output.LinearOutput: output_cards.LinearOutputCard,
    output.ScaledOutput: output_cards.ScaledOutputCard,
    output.MaskedOutput: output_cards.MaskedOutputCard,
    output.NoOutput: output_cards.NoOutputCard,
    output.FirstPooler: output_cards.FirstPoolerCard,
    output.MeanPooler: output_cards.MeanPoolerCard,
}


@overload
def card_of(part: type[positions.Scheme]) -> type[position_cards.PositionCard]: ...
@overload
def card_of(part: type[attention.Mixer]) -> type[mixer_cards.MixerCard]: ...
@overload
def card_of(part: type[feedforward.FeedForward]) -> type[feedforward_cards.FeedForwardCard]: ...
@overload
def card_of(part: type[blocks.Block]) -> type[block_cards.BlockCard]: ...
@overload
def card_of(part: type[blocks.DecoderBlock]) -> type[block_cards.DecoderBlockCard]: ...
@overload
def card_of(part: type[output.Output]) -> type[output_cards.OutputCard]: ...
@overload
def card_of(
    part: type[output.FirstPooler | output.MeanPooler],
) -> type[output_cards.PoolerCard]: ...
@overload
def card_of(part: type[norms.Norm]) -> type[norm_cards.NormCard]: ...
def card_of(part: type) -> Any:
    """Returns the card of a part, given by its class.

    >>> card_of(norms.RMSNorm).title
    'RMSNorm'
    """
    cards = [CARDS[each] for each in part.__mro__ if each in CARDS]
    return _of_experts(cards[0]) if issubclass(part, experts.Experts) else cards[0]


@lru_cache(maxsize=64)
def _of_experts(card: type[feedforward_cards.PlainCard]) -> type[feedforward_cards.ExpertsCard]:
    """Returns the card of a mixture of networks that have this one."""
    given = {"network": card, "title": f"{card.title}, experts"}
    return type(f"Experts{card.__name__}", (feedforward_cards.ExpertsCard,), given)
