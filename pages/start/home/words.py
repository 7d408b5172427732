"""Sentences of Home."""

from engine.ledger import Ledger
from engine.ledger.shares import beyond_the_map, where
from engine.presets import Preset
from ui.page_frame import Words
from ui.text.markdown import safe, with_blanks
from ui.text.numbers import counted

TITLE = "A Transformer, with the lid off"
QUESTION = "What comes next?"
GAPS_QUESTION = "What fills the gaps?"
PAIR_QUESTION = "How does one text become another?"
PUBLISHED_QUESTION = "What is a model made of?"
FAMILY = "Family"
FIRST_LETTERS = "ROMEO:\nO, she d"  # as many as there are lanes
REPEATING = "hark, hark, har"  # for a model in which heads learn to copy


def course(minutes: int) -> str:
    """Returns the label of the button that starts the first course."""
    return f"Start here: {minutes} minute{'s' * (minutes != 1)}"


# What the browser says of what is pointed at: (title, sentence), with its numbers in {braces}.
SAY = {
    "token": (
        "Token “{word}”",
        "Id {id} in a vocabulary of {vocab}; position {place} in the text.",
    ),
    "earlier": (
        "{count} earlier tokens",
        "The model reads them like the others; only the last {shown} tokens are drawn.",
    ),
    "embedding": (
        "“{word}” as a vector",
        "Its row of the embedding table: {d_model} numbers. Each stripe is the mean of {pooled} of them; blue"
        " is negative, orange positive.",
    ),
    "stream": (
        "“{word}” after block {block}",
        "The lane's {d_model} numbers, {pooled} to a stripe. Logit lens: if it stopped here, “{guess}” would"
        " get {chance}.",
    ),
    "unheard": (
        "“{word}” after block {block}",
        "The lane's {d_model} numbers, {pooled} to a stripe.",
    ),
    "head": (
        "Head {block}.{head}",
        "“{query}” attends most to “{key}”, with {weight} of its weight.",
    ),
    "attn_out": (
        "What attention adds to “{word}”",
        "All heads of block {block} together, {pooled} to a stripe.",
    ),
    "middle": (
        "“{word}” inside block {block}",
        "The lane after attention has added to it, before the feed-forward network.",
    ),
    "neuron": (
        "Neuron {neuron} of block {block}",
        "Its activation at “{word}” is {value}, rank {rank} of {d_ff} by size. The bars show the {count}"
        " largest.",
    ),
    "ffn_out": (
        "What the neurons add to “{word}”",
        "All {d_ff} of block {block} together, {pooled} to a stripe.",
    ),
    "entered": (
        "“{word}” enters the blocks",
        "The sum of the token's vector and its position's: {d_model} numbers, RMS {size}.",
    ),
    "norm_embed": (
        "“{word}” enters the blocks",
        "The sum of the token's vector and what was added to it, normalised: {d_model} numbers, RMS {size}.",
    ),
    "pos_embed": (
        "Position {place} as a vector",
        "{d_model} numbers (RMS {size}), added to the token's vector (RMS {own}).",
    ),
    "turned": (
        "Position {place} as a rotation",
        "Every head rotates its queries and keys. At “{word}”, the fastest pair of dimensions rotates by"
        " {fast}°, the slowest by {slow}°.",
    ),
    "added": (
        "Distance in head {head}",
        "At “{word}”, distance adds {near} to the previous token's score and {far} to the first token's.",
    ),
    "norm": (
        "{norm} of block {block}",
        "“{word}” enters with RMS {before} and leaves with RMS {after}, the root mean square of its"
        " {d_model} numbers.",
    ),
    "norm_final": (
        "{norm}",
        "After all blocks, “{word}” has RMS {before}; the norm rescales it to {after} for the output. RMS is"
        " the root mean square of its {d_model} numbers.",
    ),
    "block": ("Block {block}", "Click to open it: its heads, its neurons, and what they add."),
    "opened": (
        "Block {block}, open",
        "{heads} heads move information between lanes; {d_ff} neurons work on each lane. “{word}” enters"
        " with RMS {before} and leaves with {after}.",
    ),
    "guess": (
        "After “{word}”, with the model stopped after {where}",
        "Logit lens, the final norm and unembedding applied at this depth: “{guess}” {chance}, then"
        " {others}.",
    ),
    "bar": ("“{word}” as the next token", "{chance} at temperature {temperature}; its logit is {logit}."),
}
PANEL = {
    "next": "Next token",
    "there": "Token here",
    "stopped": "Stopped after",
    "embedding": "embedding",
    "block": "block {block}",
    "head": "Head {block}.{head}",
    "parameters": "Parameters: {count}.",
    "output": "block {block}, the last",
    "temperature": "Temperature",
    "top_k": "Top-k",
    "all": "all",
    "write": "Write",
    "on": "Keep writing",
    "look": "Look inside",
    "legend": "Lane = token · strip = vector (orange > 0, blue < 0) · arc = attention weight"
    " · green bar = neuron · + = added to the residual stream",
    "tokens": "token",
    "embed": "vector",
    "says": "next token",
    "learn": "Play the training run",
    "training": "Training",
    "invite": "From noise to Shakespeare",
    "time": "Training step of the model shown",
    "models": "Drag through {count} snapshots",
    "back": "Back to {title}",
    "would": "would predict",
    "open": "block {block}: {heads} heads, {neurons} neurons",
    "earlier": "… {count} earlier",
    "others": "{count} others",
    "writes": "Your text",
    "silent": "This model outputs vectors and writes no text.",
    "filler": "This model fills in gaps; it cannot continue a text.",
    "wrote": "Drawn: “{word}”, probability {chance}.",
    "summary": "{title} read {count} tokens. Stopped after {where}, at temperature {temperature} and top-k"
    " {top_k}, most likely next: {guesses}. Open: block {block}, head {head}, from “{word}”.",
    "at_step": "{title}, at step {step},",
    "map": "The text on its way through the model. Arrow keys move, Page Up and Page Down open blocks, Enter"
    " opens a block, or the page about a part.",
}


# The same of a model that says what stands at each place.
SAY_OF_GAPS = SAY | {
    "guess": (
        "At “{word}”, with the model stopped after {where}",
        "Logit lens, the final norm and unembedding applied at this depth: “{guess}” {chance}, then"
        " {others}.",
    ),
    "bar": (
        "“{word}” at this position",
        "{chance} at temperature {temperature}; its logit is {logit}.",
    ),
}
PANEL_OF_GAPS = PANEL | {
    "says": "token here",
    "summary": "{title} read {count} tokens. Stopped after {where}, at temperature {temperature} and top-k"
    " {top_k}, most likely in the last gap: {guesses}. Open: block {block}, head {head}, from"
    " “{word}”.",
}


def forgotten(count: int, limit: int, context: int) -> str:
    """Describes a text that has grown beyond the context."""
    room = "This model's context is" if limit == context else "This page has room for"
    return (
        f"{room} {limit} tokens. When it is full, the older half is dropped ({count:,}"
        f" token{'' if count == 1 else 's'} of this text so far)."
    )


def answer(
    *, read: str, causal: bool, word: str, chance: float, settled: int, before: str, gap: bool = False
) -> str:
    """Says what comes next, or stands in the last gap, and from which block on that is so: depth 0 is the
    embedding alone.
    """
    end = safe(with_blanks(read if len(read) <= 40 else f"…{read[-40:]}"))
    where = "After" if causal else "For the last gap in" if gap else "At the end of"
    text = f"{where} “{end}” it predicts **“{safe(word)}” with probability {chance:.0%}**."
    if settled == 0:
        return f"{text} The embedding alone already predicts it."
    return f"{text} Before block {settled - 1}, its top guess was “{safe(before)}”."


def vectors(tokens: int, width: int) -> str:
    """Describes a model without an output head."""
    return (
        f"This model predicts no token: **{counted(tokens, 'token')} become{'s' * (tokens == 1)}"
        f" {counted(tokens, 'vector')}"
        f" of {counted(width, 'number')}**."
    )


LIVING = Words(
    see=(
        "Each token of the text is a lane. Its vector runs through the blocks as a strip; each stripe is the"
        " mean of a few neighbouring numbers. In the open block, the heads carry information from lane to"
        " lane, and the neurons work on each lane separately."
    ),
    why=(
        "That is the whole model: a vector for each token, and blocks that add to it. On the right is a"
        " probability for every token of the vocabulary, computed from the last lane."
    ),
    attempt=(
        "Type a sentence of your own and press *Write*. Change the temperature. Point at a head to see which"
        " tokens attend to which, and stop the model after an earlier block."
    ),
)

FILLING = Words(
    see=(
        "Each token of the text is a lane, and every lane attends to all lanes, both before and after it."
        " On the right is the model's prediction for each position; where the token is known, it can simply"
        " copy it."
    ),
    why=(
        "A model that fills in masked tokens reads the text on both sides of a gap, which makes it good at"
        " analysing a"
        " finished text. It was not trained to continue one."
    ),
    attempt=(
        "Replace any character of the text with an underscore. Delete characters around the gap and see how"
        " the prediction changes. Point at a head: it attends to the right as well."
    ),
)

MAP = Words(
    see=(
        "The grey band is the **residual stream**: a vector of numbers for each token, carried from the input"
        " to the output. Every sublayer reads from it and adds an update to it. The block in the middle is"
        " repeated, with different weights each time."
    ),
    why=(
        "The input and the output are simple tables. All the work in between is done by one kind of block,"
        " repeated with different weights: a larger model has more and wider blocks."
    ),
    attempt=(
        "Choose GPT-2, then LLaMA-2 70B: the drawing hardly changes, but the numbers do. Then choose BERT,"
        " and see how the mask and the norms differ."
    ),
)


def about(preset: Preset, ledger: Ledger) -> str:
    """Returns the preset in a line (Markdown)."""
    beyond = beyond_the_map(ledger) if ledger.encoder is None else 0
    outside = f" {beyond:,} of them are not on this map." if beyond else ""
    blocks = f"{ledger.config.n_layers}"
    if ledger.encoder is not None:
        blocks = f"{ledger.encoder.n_layers} + {blocks}"
    source = f" *Source: {preset.source}.*" if preset.source and not preset.trainable else ""
    return (
        f"**{preset.title}.** {preset.summary} **{ledger.total:,} parameters**,"
        f" {where(ledger).blocks_share:.0%} of them in the {blocks} blocks.{outside}{source}"
    )


def alt(preset: Preset, ledger: Ledger) -> str:
    """Returns the map in words."""
    kind = "decoder-only" if ledger.config.causal else "encoder-only"
    return (
        f"Map of a {kind} Transformer, {preset.title}: from tokens through {ledger.config.n_layers} blocks to"
        f" probabilities; {ledger.total:,} parameters."
    )
