"""What the views of Tokens say."""

from __future__ import annotations

from engine.measure.comparing import Gain, Spread
from engine.measure.merging import Achieved, Shrinking
from engine.measure.vocabulary import Cost
from ui.look import Words

SENTENCE = (
    "A model reads numbers. Text is cut into pieces from a fixed list, and each piece is replaced by its"
    " place in that list."
)

BPE = Words(
    see=(
        "Byte-pair encoding (Sennrich et al. 2016): count every pair of neighbours, glue the most"
        " frequent one together, count again. Grey is a starting symbol, a colour is a token that was"
        " learned; equal tokens have equal colours."
    ),
    why=(
        "A model reads ids, not letters. Frequent words become one token each, so the text gets short;"
        " rare ones are spelled in pieces, so nothing is unknown. Attention costs $T^2$: half the tokens,"
        " a quarter of the work."
    ),
    attempt=(
        "Choose “Languages” and watch letters that are not English being put together from bytes first."
        " Then switch the pre-splitting off: tokens begin to run across the borders of words."
    ),
)

COMPARE = Words(
    see=(
        "One text, cut by each tokenizer. Neighbours have different colours so that the cuts show; the"
        " colours mean nothing else. Bytes such as `E2 82` stand where a token ends inside a character."
    ),
    why=(
        "The model never sees the letters, only the ids. What a language, a sum or a name costs, and what"
        " is hard about it, is settled here, before the first matrix: few tokens mean a longer memory and"
        " less work."
    ),
    attempt=(
        "Go through the examples: each says what to notice. Then type your own name, your own language, a"
        " line of code. Let our BPE learn from your text and see it find your words."
    ),
)

COST = Words(
    see=(
        "Byte-pair encoding learned from the text once; stopped earlier, it has a smaller vocabulary V."
        " For each V: the tokens T of the passage, the numbers in the embedding, $V \\cdot d$, and the"
        " scores of one attention head, $T^2$. Diamonds are other tokenizers."
    ),
    why=(
        "Each entry is one more row to store and to learn, and a rare one is seldom seen. Each token"
        " saved makes the sequence shorter, and attention pays for length squared. GPT-2 settled at"
        " 50,257; later models went further, since their blocks are so much larger than their tables."
    ),
    attempt=(
        "Widen the model and add layers: the embedding's share falls. Take all of the text: most of the"
        " gain comes with the first few thousand entries. On the text that it learned from, our BPE needs"
        " fewer entries than gpt2; on any other it would not."
    ),
)

# BPE, watched -----------------------------------------------------------------------------------


def learned_from(name: str, characters: int) -> str:
    """What the merges were learned from, and by which rules."""
    return (
        f"Learned from {name}: {characters:,} characters. Tie rule: of equally frequent"
        " pairs the one with the smaller first id wins, then the smaller second, as Hugging Face's trainer"
        " decides. Where the text is cut into words first (by GPT-2's rule), no merge crosses their borders."
        " Click a token to see how it was built."
    )


def achieved(found: Achieved, asked: int) -> str:
    """What the merges came to; `asked` is how many tokens should have been learned."""
    shrinking = found.shrinking
    said = (
        f"**{found.start:,} → {found.left:,} tokens** after {found.merges:,} merges, {found.share:.1%} of the"
        f" start: {shrinking.characters_per_token[-1]:.2f} characters and"
        f" {shrinking.bytes_per_token[-1]:.2f} bytes for each token, with a vocabulary of"
        f" {found.vocab_size:,}."
    )
    if found.early:
        said += f" The first {found.half:,} merges did half of the work: frequent pairs come first."
    if found.learned < asked:
        said += f" You asked for {asked:,}; after these no pair was left."
    if found.once is not None:
        said += (
            f" From merge {found.once:,} on the winning pair stands there only once: from there the text is"
            " learned by heart, which helps with no other text."
        )
    return said


def saved(found: Shrinking, name: str) -> str:
    """What the first merge saved, and the last."""
    return (
        f"The first merge made {name} {found.saved[0]:,} tokens shorter, the last {found.saved[-1]:,}:"
        " frequent pairs come first, so a later merge removes fewer tokens. The CSV has all measures."
    )


def four_ways(cut: str, new_tokens: int, by_heart: bool) -> str:
    """What the four trainings were made on, and what each way is worth."""
    return (
        f"Four trainings on {cut}, each for up to {new_tokens:,} new tokens. A vocabulary that starts from"
        " characters has every character of the text, and one that is not among them cannot be encoded at"
        " all. From bytes nothing is ever unknown, but a character of several bytes must be merged first."
        + (
            " Where one or two tokens are left, the whole text has become a token: it was learned by heart."
            if by_heart
            else ""
        )
    )


# Compare tokenizers -----------------------------------------------------------------------------

SPECIAL = (
    "Some ids stand for no text at all. `{end}` marks the border between two documents: the"
    " *program* puts its id between them when a model is trained, and a model that produces it has"
    " finished. It must never come out of what a person types, or anybody could end the document in the"
    " middle of an instruction and begin another. So user text is encoded as ordinary text"
    " (`encode_ordinary`): the same letters become ordinary tokens."
)


def dearest(found: Spread, most: str, least: str, entries: tuple[int, int]) -> str:
    """The tokenizer that needs most against the one that needs least, by their titles; `entries` are those of
    their vocabularies, in this order.
    """
    return (
        f"**{least} needs {found.least_tokens:,} tokens, {most} {found.most_tokens:,}:"
        f" {found.times:.1f} times as many.** Attention compares every token with every other, so that is"
        f" {found.work:.1f} times the work in each head; the price of the short way is a table of"
        f" {entries[1]:,} entries instead of {entries[0]:,}."
    )


# What vocabulary size costs ---------------------------------------------------------------------


def model_of(layers: int, d: int) -> str:
    """The model whose parameters the table counts."""
    return (
        f"The model: {layers} layer{'s' * (layers != 1)} of width {d:,}, $12\\,L\\,d^2$ in its blocks and a"
        " few norms. *Tied*: one matrix reads tokens in and writes them out. *Untied*: a second matrix of"
        " V·d writes them out. T² is the number of scores that one head of one layer computes for the"
        " passage."
    )


def gained(first: Cost, last: Cost, found: Gain, d: int) -> str:
    """What a longer list of tokens buys, and what it costs."""
    return (
        f"**From {first.name} to {last.name}: {found.tokens:.1f} times fewer tokens,"
        f" {found.scores:.1f} times less attention, {found.embedding:,.0f}"
        f" times the embedding.** At width {d:,} the embedding is then {last.share:.0%} of the tied model,"
        f" against {first.share:.1%} before. The blocks do not grow with V, so a large model hardly notices a"
        " large vocabulary; a small one is mostly table."
    )
