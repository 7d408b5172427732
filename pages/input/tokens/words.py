"""Sentences of the views of Tokens."""

from __future__ import annotations

from engine.measure.tokens.subwords import Achieved, NewWords, Shrinking, Way, Ways
from engine.measure.tokens.vocabulary import Cost, Cut, Gain, Passage, RoundTrip, Spread
from ui.page_frame import Words
from ui.text.markdown import safe

BPE_ASKED = "How does BPE (byte-pair encoding) build its tokens?"
COMPARE_ASKED = "How do tokenizers split the same text?"
ROUNDTRIP_ASKED = "Does decoding restore the text?"
COST_ASKED = "How large should the vocabulary be?"

BPE = Words(
    see=(
        "Byte-pair encoding (Sennrich et al. 2016): count every pair of neighbours, glue the most"
        " frequent one together, count again. Grey is a starting symbol, a colour is a token that was"
        " learned; equal tokens have equal colours."
    ),
    why=(
        "A model reads ids, not characters. Frequent words become one token each, so the text gets short;"
        " rare ones are spelled in pieces, so nothing is unknown. Attention costs $T^2$: half the tokens,"
        " a quarter of the work."
    ),
    attempt=(
        "Choose “Languages” and watch characters that are not English being put together from bytes first."
        " Then switch the pre-splitting off: tokens begin to run across the borders of words."
    ),
)

COMPARE = Words(
    see=(
        "One text, cut by each tokenizer. Neighbours have different colours so that the cuts show; the"
        " colours mean nothing else. Bytes such as `E2 82` stand where a token ends inside a character."
    ),
    why=(
        "The model never sees the characters, only the ids. What a language, a sum or a name costs, and what"
        " is hard about it, is settled here, before the first matrix: few tokens mean a longer memory and"
        " less work."
    ),
    attempt=(
        "Go through the examples: each says what to notice. Then type your own name, your own language, a"
        " line of code. Let our BPE learn from your text and see it find your words."
    ),
)

ROUNDTRIP = Words(
    see=(
        "Encoding: the text becomes ids, each below its token. Decoding: the ids become text again. A dashed"
        " frame is what has no id."
    ),
    why=(
        "A model sees ids and nothing else, so what has no id cannot be said or read. A vocabulary of"
        " characters or words knows what stood in its text. One that begins with the 256 bytes knows every"
        " text there is."
    ),
    attempt=(
        "Take “To be or not to be”: all of it comes back. Then write one character that Shakespeare does"
        " not use,"
        " or an emoji, and count its bytes."
    ),
)

COST = Words(
    see=(
        "Byte-pair encoding learned from the text once; stopped earlier, it has a smaller vocabulary V. The"
        " green line is the number of tokens T that the passage then has, the blue one the numbers in the"
        " embedding, $V \\cdot d$. Diamonds are other tokenizers."
    ),
    why=(
        "Each entry is one more row to store and to learn, and a rare one is seldom seen. Each token"
        " saved makes the sequence shorter, and attention pays for length squared. GPT-2 settled at"
        " 50,257; later models went further, since their blocks are so much larger than their tables."
    ),
    attempt=(
        "Take all of the text: most of the gain comes with the first few thousand entries. On the text"
        " that it"
        " learned from, our BPE needs fewer entries than gpt2; on any other it would not."
    ),
)


def _times(ratio: float) -> str:
    """A factor, no more exact than is of use."""
    return f"{ratio:,.{1 if ratio < 10 else 0}f}"


# BPE --------------------------------------------------------------------------------------------


def why_pieces(ways: Ways, merges: int, name: str) -> str:
    """Returns the answer of the view: what pieces save, and what whole words would not do."""
    letters, pieces = ways.characters, ways.pieces
    if pieces.tokens >= letters.tokens:
        return (
            f"**The {letters.tokens:,} characters of {name} are still {pieces.tokens:,} tokens** after"
            f" {merges:,} merges: one character here takes several bytes, and they have to be glued together"
            " first. Let it learn more tokens."
        )
    saved = (
        f"**{letters.tokens:,} characters become {pieces.tokens:,} tokens**: {ways.shorter:.1f} times"
        f" shorter, so attention compares **{_times(ways.less_work)} times fewer pairs**."
    )
    if ways.words is None:
        return saved
    if not ways.new or ways.words.spelled:
        return f"{saved} Whole words would be {ways.words.tokens:,}, but their list has no next new word."
    return (
        f"{saved} A list of whole words has no entry for a new one such as “{safe(ways.new)}”; BPE spells it"
        f" in **{ways.pieces.spelled:,} pieces**."
    )


def lists(ways: Ways, base: int, level: str, large: int | None = None) -> str:
    """Says how long the list of each way is, for this text. `large` is how many words all of Tiny Shakespeare
    has; None where that is not known, or is what the merges are learned from.
    """
    pieces = ways.pieces.vocab_size
    text = (
        f"The lists for this text: **{ways.characters.vocab_size:,}** characters;"
        f" **{base:,} {level.lower()} + {pieces - base:,} merges** of BPE"
    )
    if ways.words is None:
        return f"{text}."
    table = "" if large is None else f" All of Shakespeare needs {large:,}."
    return (
        f"{text}; **{ways.words.vocab_size:,}** whole words, and one more for each new word of another"
        f" text.{table}"
    )


def spelled(way: Way) -> str:
    """Says how a word that the text does not have is written in one way."""
    return f"{way.spelled:,} token{'s' * (way.spelled != 1)}" if way.spelled else "cannot"


def learned_from(name: str, characters: int) -> str:
    """Says what the merges were learned from, and by which rules."""
    return (
        f"Learned from {name}: {characters:,} characters. Tie rule: of equally frequent"
        " pairs the one with the smaller first id wins, then the smaller second, as Hugging Face's trainer"
        " decides. Where the text is cut into words first (by GPT-2's rule), no merge crosses their borders."
        " Click a token to see how it was built."
    )


def achieved(result: Achieved, requested: int) -> str:
    """Says how many tokens were learned; `requested` should have been."""
    shrinking = result.shrinking
    text = (
        f"**{result.start:,} → {result.left:,} tokens** after {result.merges:,} merges, {result.share:.1%}"
        f" of the start: {shrinking.characters_per_token[-1]:.2f} characters and"
        f" {shrinking.bytes_per_token[-1]:.2f} bytes for each token, with a vocabulary of"
        f" {result.vocab_size:,}."
    )
    if result.early:
        text += f" The first {result.half:,} merges did half of the work: frequent pairs come first."
    if result.learned < requested:
        text += f" You asked for {requested:,}; after these no pair was left."
    if result.once is not None:
        text += (
            f" From merge {result.once:,} the winning pair occurs only once: from there BPE memorises the"
            " text, which helps with no other text."
        )
    return text


def saved(shrinking: Shrinking, name: str) -> str:
    """Says what the first merge saved, and the last."""
    return (
        f"The first merge made {name} {shrinking.saved[0]:,} tokens shorter, the last"
        f" {shrinking.saved[-1]:,}: frequent pairs come first, so a later merge removes fewer tokens. The"
        " CSV has all measures."
    )


def four_ways(cut: str, new_tokens: int, by_heart: bool) -> str:
    """Says what the four trainings were made on, and what each way is worth."""
    return (
        f"Four runs on {cut}, each for up to {new_tokens:,} new tokens. A vocabulary that starts from"
        " characters has every character of the text, and one that is not among them cannot be encoded at"
        " all. From bytes nothing is ever unknown, but a character of several bytes must be merged first."
        + (
            " Where one or two tokens are left, the whole text has become a token: it was memorised."
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
    " (`encode_ordinary`): the same characters become ordinary tokens."
)


def dearest(spread: Spread, most: str, least: str, entries: tuple[int, int]) -> str:
    """Returns the answer of the view: the tokenizer that needs most against the one that needs least, by
    their titles; `entries` are those of their vocabularies, in this order.
    """
    return (
        f"**{least} needs {spread.least_tokens:,} tokens, {most} {spread.most_tokens:,}: {spread.times:.1f}"
        f" times as many**, and {spread.work:.1f} times the work for attention. The price of the short"
        " way is a"
        f" list of {entries[1]:,} entries instead of {entries[0]:,}."
    )


def only(title: str, cut: Cut) -> str:
    """Returns the answer of the view where there is nothing to compare with."""
    return f"**{title} makes {cut.tokens:,} tokens of it**, {cut.characters_per_token:.2f} characters each."


OUR_SPECIAL = (
    "Computed now, by tiktoken. Our own BPE has no special tokens at all: it learned from one long text."
)
NO_SPECIAL = (
    "No published vocabulary is on this machine, so it cannot be shown. Our own BPE has no special tokens at"
    " all: it learned from one long text."
)

# What vocabulary size costs ---------------------------------------------------------------------


def measured_on(passage: Passage, requested: int, name: str) -> str:
    """Says what was counted; `requested` words were to be, 0 for all."""
    of = f"the first {passage.words:,} words" if requested else "the whole text"
    fewer = f" It has no more than {passage.words:,} words." if requested > passage.words else ""
    return f"Measured on {of} of {name}: {passage.characters:,} characters.{fewer}"


def model_of(layers: int, d: int) -> str:
    """Returns the model whose parameters the table counts."""
    return (
        f"The model: {layers} layer{'s' * (layers != 1)} of width {d:,}, $12\\,L\\,d^2$ in its blocks and a"
        " few norms. *Tied*: one matrix reads tokens in and writes them out. *Untied*: a second matrix of"
        " V·d writes them out. T² is the number of scores that one head of one layer computes for the"
        " passage."
    )


def gained(first: Cost, last: Cost, gain: Gain, new: NewWords | None) -> str:
    """Returns the answer of the view: what a longer list of pieces buys and costs, and why it is no list of
    words.
    """
    text = (
        f"**From {first.vocab_size:,} {first.name} to {last.name}'s {last.vocab_size:,} entries:"
        f" {gain.tokens:.1f} times fewer tokens, {_times(gain.scores)} times less attention**, for an"
        f" embedding {_times(gain.embedding)} times as large."
    )
    if new is None:
        return text
    return f"{text} {new.listed:,} whole words would still miss **{new.share:.1%}** of those in new text."


def share_of(first: Cost, last: Cost, d: int) -> str:
    """Says what share of the whole model the embedding is."""
    return (
        f"At width {d:,} the embedding is {last.share:.0%} of the tied model with {last.name}, against"
        f" {first.share:.1%} with {first.name}. The blocks do not grow with V, so a large model hardly"
        " notices"
        " a large vocabulary; a small one is mostly table."
    )


PERPLEXITY = (
    "A model's loss is counted for each token, and a long token is harder to guess than a character. So the"
    " *perplexity* $e^{loss}$, the effective number of choices, does not compare across"
    " vocabularies. Divided by the characters of a token it does: *bits per character*. The table has models"
    " that are all equally good, at 2 bits per character: $perplexity ="
    " 2^{\\,2\\,\\cdot\\,characters\\ per\\ token}$."
)

RULE_OF_THUMB = (
    "The rule of thumb counts 5 characters and 1.3 tokens for a word, and Tiny Shakespeare's 65 characters."
)


def thousand_words(name: str, characters: float, tokens: float | None) -> str:
    """Says how long a word is here, beside the rule of thumb."""
    tail = "" if tokens is None else f", and gpt2 makes {tokens:.2f} tokens of one"
    return (
        f"{RULE_OF_THUMB} In {name} a word, with the blanks around it, has {characters:.2f} characters{tail}."
    )


def single_line(line: str, characters: int, isolated: int, with_empty: int, running: int) -> str:
    """Returns one line in three surroundings; `line` is safe Markdown, the others are numbers of tokens."""
    return (
        f"**“{line}” is {characters} characters and {isolated} tokens** for gpt2. With an empty line after"
        " it there"
        f" are {with_empty}: the two line breaks are one token. In the running text there are {running}:"
        " before"
        " another word gpt2's splitting rule takes them apart. Where a text ends changes its tokens."
    )


# Round trip -------------------------------------------------------------------------------------


def came_back(trip: RoundTrip) -> str:
    """Says what one tokenizer's ids are decoded to."""
    if trip.same:
        return f"back: “{trip.back}”, character for character"
    if trip.lost:
        named = ", ".join(f"“{one}”" for one in trip.lost[:6])
        return f"back: “{trip.back}”. No id for {named}"
    return f"back: “{trip.back}”. Blanks are not kept"


def round_trip(trips: dict[str, RoundTrip], entries: dict[str, int]) -> str:
    """Returns the answer of the view; `trips` and the `entries` of the vocabularies are by title."""
    whole = [name for name, one in trips.items() if one.same]
    letters = trips["Characters"]
    if len(whole) == len(trips):
        return (
            f"**The text comes back character for character from all {len(trips)} tokenizers**: the same"
            f" {letters.cut.tokens}"
            f" characters and blanks are {letters.cut.tokens} ids by characters and"
            f" {trips['BPE'].cut.tokens} by BPE. A character that nobody has listed changes that: try “bé”."
        )
    if letters.lost:
        one = safe(letters.lost[0])
        return (
            f"**“{one}” is not one of the {entries['Characters']} known characters, so it has no id**:"
            " encoding"
            " fails or drops it; a word vocabulary loses the whole word. BPE starts from the 256 bytes and"
            f" spells it: **its {trips['BPE'].cut.tokens} ids decode to the same text**."
        )
    return (
        f"**The text comes back character for character from {len(whole)} of {len(trips)} tokenizers.** The"
        " list of"
        " words keeps no blanks, and has no id for a word that it was not made from."
    )


GLITCH = (
    "“ SolidGoldMagikarp” is a user's name that stood so often in the text from which gpt2's pieces were"
    " learned that it became **one token**. In the text from which the model learned it hardly stood at all,"
    " so its row of the embedding stayed nearly random, and models answered nonsense to it: a *glitch token*"
    " (Rumbelow and Watkins 2023)."
)

# How others learn their pieces: (name, how, who uses it)
OTHERS = (
    ("BPE (Sennrich et al. 2016)", "glue the most frequent pair, again and again", "GPT-2 to GPT-4, LLaMA"),
    (
        "WordPiece (Schuster and Nakajima 2012)",
        "glue the pair that makes the text most likely: often together, seldom apart; ## marks the"
        " inside of a word",
        "BERT",
    ),
    (
        "Unigram (Kudo 2018)",
        "begin with far too many pieces, throw out those that are missed least; cut a text in its most"
        " likely way",
        "T5, XLNet",
    ),
    (
        "SentencePiece (Kudo and Richardson 2018)",
        "no method but a program: BPE or Unigram on raw text, in which a blank is written ▁",
        "T5, LLaMA 1 and 2",
    ),
)

# Tokens that stand for no text: (model, before a text, after it)
BEGIN_END = (
    ("GPT-2", "<|endoftext|>", "<|endoftext|>"),
    ("BERT", "[CLS]", "[SEP]"),
    ("T5", "none", "</s>"),
    ("LLaMA 2", "<s>", "</s>"),
)
