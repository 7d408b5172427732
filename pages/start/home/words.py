"""What Home says."""

from engine.ledger import Ledger
from engine.ledger.shares import beyond_the_map, where
from engine.presets import Preset
from ui.look import Words

TITLE = "A Transformer, with the lid off"
SENTENCE = "Text goes in, a guess at the next token comes out. Point at a part to see what it does and costs."

MAP = Words(
    see=(
        "The grey road is the **residual stream**: a vector of numbers for each token, carried from the input"
        " to the output. Every sublayer reads from it and adds an update to it, and the block in the middle"
        " is repeated until the stream is full of meaning."
    ),
    why=(
        "The way in and the way out are simple tables. All the work is done by one block, copied: to make a"
        " model more able, you add more of the same."
    ),
    attempt=(
        "Choose GPT-2, then LLaMA-2 70B: the drawing hardly changes, the numbers do. Then choose BERT, and"
        " look for what became of the mask and the norms."
    ),
)


def about(preset: Preset, ledger: Ledger) -> str:
    """The preset in a line (Markdown)."""
    beyond = beyond_the_map(ledger)
    outside = f" {beyond:,} of them are outside this map." if beyond else ""
    source = f" *Source: {preset.source}.*" if preset.source and not preset.trainable else ""
    return (
        f"**{preset.title}.** {preset.summary} **{ledger.total:,} parameters**,"
        f" {where(ledger).blocks_share:.0%} of them in the {ledger.config.n_layers} blocks.{outside}{source}"
    )


def alt(preset: Preset, ledger: Ledger) -> str:
    """The map in words."""
    kind = "decoder-only" if ledger.config.causal else "encoder-only"
    return (
        f"Map of a {kind} Transformer, {preset.title}: from tokens through {ledger.config.n_layers} blocks to"
        f" probabilities; {ledger.total:,} parameters."
    )
