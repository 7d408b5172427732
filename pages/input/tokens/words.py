"""Sentences of the views of Tokens."""

from __future__ import annotations

from engine.measure.tokens.subwords import Achieved, NewWords, Shrinking, ThreeWays, Way
from engine.measure.tokens.vocabulary import Cost, Cut, Gain, Passage, RoundTrip, Spread
from ui.page_frame import Words
from ui.text.markdown import safe, with_blanks
from ui.text.numbers import counted

BPE_ASKED = "How does BPE build its tokens?"
COMPARE_ASKED = "How do different tokenizers split the same text?"
ROUNDTRIP_ASKED = "Does decoding restore the text?"
COST_ASKED = "How large should the vocabulary be?"

BPE = Words(
    see=(
        "Byte-pair encoding (Sennrich et al. 2016): count every pair of adjacent tokens, merge the most"
        " frequent pair, count again. Grey marks a base symbol, a colour a learned token; equal tokens"
        " share a colour."
    ),
    why=(
        "A model reads ids, not characters. Frequent words become one token each, so sequences are short;"
        " rare words are split into subword pieces, so nothing is out of vocabulary. Half the tokens means a"
        " quarter of the attention scores."
    ),
    attempt=(
        "Choose “Languages” and watch non-English characters being assembled from bytes first. Then switch"
        " pre-tokenization off: tokens begin to cross word boundaries."
    ),
)

COMPARE = Words(
    see=(
        "One text, split by each tokenizer. Adjacent tokens differ in colour only to show the boundaries."
        " Bytes such as `E2 82` appear where a token ends inside a character."
    ),
    why=(
        "The model never sees characters, only ids. So the tokenizer decides what a language, a sum or a name"
        " costs: fewer tokens mean less work and more text in the context."
    ),
    attempt=(
        "Go through the examples: each has a note on what to notice. Then type your name, a sentence in your"
        " language or a line of code. Train our BPE on your text and watch it learn your words."
    ),
)

ROUNDTRIP = Words(
    see=(
        "Encoding: the text becomes ids, each shown below its token. Decoding: the ids become text again. A"
        " dashed frame marks text without an id."
    ),
    why=(
        "A model sees only ids, so it can neither read nor write text that has none. A vocabulary of"
        " characters or words covers only its training text; one that starts from the 256 bytes covers every"
        " text."
    ),
    attempt=(
        "Take “An é”: Shakespeare has no such character. Then take “Emoji”, and count the ids of one picture."
        " Type an ordinary sentence: only words cannot be joined again."
    ),
)

COST = Words(
    see=(
        "Byte-pair encoding was trained once on the text; stopping it earlier gives a smaller vocabulary V."
        " Green: the number of tokens T in the passage. Blue: the parameters of the embedding, $V \\cdot d$."
        " Diamonds: other tokenizers."
    ),
    why=(
        "Each entry is one more row to store and to learn, and a rare entry is seldom trained. Each token"
        " saved shortens the sequence, and attention costs its length squared. GPT-2 settled on 50,257; later"
        " models went further, since their blocks dwarf the embedding."
    ),
    attempt=(
        "Take the whole text: most of the gain comes from the first few thousand entries. On its own training"
        " text our BPE needs fewer entries than gpt2; on other text it would not."
    ),
    texts=(
        "A lecture counts 62 characters and 16 gpt2 tokens in its line from Shakespeare, and lists 14 of"
        " them. Under *Measure it* the line has 61 and 15; only counting the empty line after it makes 62"
        " characters. It calls the larger table negligible where $d \\gg V$; the blocks outweigh it once $L d"
        " \\gg V$. The lecture also compares perplexities across vocabularies; that needs *bits per"
        " character*, since perplexity is per token and tokens differ in length."
    ),
)


# The text ---------------------------------------------------------------------------------------

SOURCES = {"shakespeare": "Tiny Shakespeare", "python": "The Python manual", "yours": "Your text"}
MERGES_FROM = {"own": "This text", "shakespeare": "Tiny Shakespeare", "python": "Python manual"}
TEXTS = {"shakespeare": "Tiny Shakespeare", "python": "the Python manual", "yours": "your text"}
EXAMPLES, YOUR_TEXT, TRY_AGAIN = "Examples", "Your text", "Try again"
LEARNING, READING_VOCABULARIES = "Learning the merges …", "Reading the published vocabularies …"
NOT_LINKED = "The text is too long for the link: if you share it, others will see a different text."
NOTHING_TO_LEARN = (
    "There is nothing to learn from an empty text: the tokenizers below were trained on the Python manual."
)
MANUAL_INSTEAD = (
    ":material/info: Tiny Shakespeare is not on this machine (the Train page can download it): the Python"
    " manual is used instead."
)
NO_MERGES = "The box is empty. Type or paste a text to learn merges from, or choose an example."
NOTHING_TO_MERGE = (
    "There is nothing to merge: no word has two adjacent symbols. Write at least one word of two letters."
)
BEGINNING_SHOWN = "The box is empty: the beginning of the training text is shown instead."


def box_hint(limit: int, longer: str) -> str:
    return (
        f"Anything, up to {limit:,} characters; {longer} Press Ctrl+Enter to apply. A long text is not part"
        " of the link."
    )


def too_long(characters: int, limit: int) -> str:
    return (
        f"The text has {counted(characters, 'character')}; at most {limit:,} are allowed here. Shorten it by"
        f" {characters - limit:,}."
    )


def half_characters(count: int) -> str:
    return (
        f":material/info: {count:,} lone surrogates (half characters) cannot be encoded in UTF-8: each"
        " tokenizer reads U+FFFD instead."
    )


def shown_without(missing: list[str], why: str) -> str:
    """Says which published encodings could not be had."""
    return f":material/cloud_off: Shown without {', '.join(map(safe, missing))}. {safe(why)}."


def merges_hint(most: int) -> str:
    return f"Each merge adds one token to the starting symbols; at most {most:,} here."


def learned_in_part(unsplit: bool, learned: int, characters: int) -> str:
    """Says that merges are learned from the beginning of a text only."""
    why = "Without splitting into words, nothing occurs twice" if unsplit else "Its words hardly ever recur"
    return (
        f":material/info: {why}, so a long text would take too much time and memory: merges are learned from"
        f" its first {learned:,} of {counted(characters, 'character')}."
    )


def shown_in_part(shown: int, characters: int, learned: bool) -> str:
    """Says that the beginning of the typed text is shown; `learned`: merges are learned from all of it."""
    if learned:
        return (
            f":material/info: Merges are learned from all {characters:,} characters; the first {shown:,} are"
            " shown as tokens."
        )
    return f":material/info: The first {shown:,} of {characters:,} characters are shown."


def _times(ratio: float) -> str:
    """A factor, no more exact than is of use."""
    return f"{ratio:,.{1 if ratio < 10 else 0}f}"


# BPE --------------------------------------------------------------------------------------------


def why_pieces(ways: ThreeWays, merges: int, name: str) -> str:
    """Returns the answer of the view: what pieces save, and what whole words would not do."""
    letters, pieces = ways.characters, ways.pieces
    if pieces.tokens >= letters.tokens:
        return (
            f"**The {letters.tokens:,} characters of {name} are still {pieces.tokens:,} tokens** after"
            f" {counted(merges, 'merge')}: a character here takes several bytes, which must be merged"
            " first. Raise the"
            " number of merges."
        )
    saved = (
        f"**{counted(letters.tokens, 'character')} become{'s' * (letters.tokens == 1)}"
        f" {counted(pieces.tokens, 'token')}**:"
        f" {ways.shorter:.1f} times"
        f" shorter, so attention compares **{_times(ways.less_work)} times fewer pairs**."
    )
    if ways.words is None:
        return saved
    if not ways.new or ways.words.spelled:
        return (
            f"{saved} Splitting into words gives {ways.words.tokens:,}, but a new word is out of vocabulary."
        )
    return (
        f"{saved} A word-level vocabulary has no entry for a new word such as “{safe(ways.new)}”; BPE spells"
        f" it in **{counted(ways.pieces.spelled, 'piece')}**."
    )


def lists(ways: ThreeWays, base: int, level: str, large: int | None = None) -> str:
    """Says how large each vocabulary is, for this text. `large` is how many words all of Tiny Shakespeare
    has; None where that is not known, or is what the merges are learned from.
    """
    pieces = ways.pieces.vocab_size
    text = (
        f"Vocabularies for this text: **{ways.characters.vocab_size:,}** characters; **{base:,}"
        f" {level.lower()} + {pieces - base:,} merges** of BPE"
    )
    if ways.words is None:
        return f"{text}."
    table = "" if large is None else f" Tiny Shakespeare needs {large:,}."
    return (
        f"{text}; **{ways.words.vocab_size:,}** whole words, plus one for each new word in another"
        f" text.{table}"
    )


def spelled(way: Way) -> str:
    """Says how a word that the text does not have is written in one way."""
    return f"{way.spelled:,} token{'s' * (way.spelled != 1)}" if way.spelled else "impossible"


PARTS = {
    "compression": "Compression",
    "merges": "Merges",
    "ways": "Base symbols and splitting",
    "tiktoken": "As tiktoken",
}
WAYS = {
    ("byte", "words"): "bytes, split into words",
    ("byte", "none"): "bytes, no splitting",
    ("char", "words"): "characters, split into words",
    ("char", "none"): "characters, no splitting",
}
PASSAGE, TRAINING_FOUR = "the passage shown", "Training four tokenizers …"
MERGES_LIST = (
    "In the order in which they were learned. Hexadecimal pairs are bytes that do not yet form a whole"
    " character. Use its toolbar to search or download the table. Counts are of adjacent pairs, overlaps"
    " included: “aaa” contains the pair “a”, “a” twice, but allows one merge."
)
BYTES_ONLY = (
    "tiktoken always starts from the 256 bytes, so it cannot take a tokenizer that starts from characters."
    " Choose “Bytes” above to compare both."
)
BOTH_COMPUTED = "Computed just now by both, from the same ranks. In a notebook:"
NOTEBOOK = """import json
from engine.data.tokenizers.bpe import BpeTokenizer

own = BpeTokenizer.from_dict(json.load(open("tokenizer.json")))
encoding = own.as_tiktoken()  # a tiktoken.Encoding
encoding.encode_ordinary("any text")"""
DOWNLOAD = "Download this tokenizer (JSON)"


def compression_alt(unit: str, first: float, last: float, name: str) -> str:
    return f"{unit} against the number of merges made: from {first:.3g} to {last:.3g} for {name}."


def four_ways_alt(new_tokens: int, left: dict[str, int]) -> str:
    counts = ", ".join(f"{name} {tokens:,}" for name, tokens in left.items())
    return f"Tokens of a text at first and after up to {new_tokens} merges, for four ways to start: {counts}."


def crossing(tokens: list[str]) -> str:
    """Says what the tokens (Markdown) across a word boundary are worth."""
    if not tokens:
        return (
            "Without splitting, none of these tokens crosses a word boundary: there are too few merges, or"
            " too few words."
        )
    some = " · ".join(f"“{token}”" for token in tokens[:10])
    return (
        f"Without splitting, {len(tokens):,} of the tokens learned from bytes cross a word boundary, such as"
        f" {some}. They save tokens here but would rarely help elsewhere: the vocabulary spends entries on"
        " words *and* on their chance combinations with neighbours."
    )


def same_ids(tokens: int) -> str:
    return f"The same ids: ours and tiktoken's agree in all {tokens:,} tokens of the passage."


def other_ids(first: int, ours: int, theirs: int) -> str:
    return f"The ids differ from token {first:,} onwards: {ours:,} in ours, {theirs:,} in tiktoken's."


def learned_from(name: str, characters: int) -> str:
    """Says what the merges were learned from, and by which rules."""
    return (
        f"Trained on {name}: {counted(characters, 'character')}. Ties are broken as in Hugging Face's"
        " trainer: the"
        " pair with the smaller first id wins, then the one with the smaller second. Where the text is first"
        " split into words (by GPT-2's rule), no merge crosses a word boundary. Click a token to see how it"
        " was built."
    )


def achieved(result: Achieved, requested: int) -> str:
    """Says how many tokens were learned; `requested` should have been."""
    shrinking = result.shrinking
    text = (
        f"**{result.start:,} → {counted(result.left, 'token')}** after {counted(result.merges, 'merge')},"
        f" {result.share:.1%} of"
        f" the original length: {shrinking.characters_per_token[-1]:.2f} characters and"
        f" {shrinking.bytes_per_token[-1]:.2f} bytes per token, with a vocabulary of {result.vocab_size:,}."
    )
    if result.early:
        text += (
            f" The first {result.half:,} merges account for half of the compression: frequent pairs come"
            " first."
        )
    if result.learned < requested:
        text += f" You asked for {requested:,}, but no pair was left to merge."
    if result.once is not None:
        text += (
            f" From merge {result.once:,} the winning pair occurs only once: BPE then just memorises this"
            " text, which helps with no other."
        )
    return text


def saved(shrinking: Shrinking, name: str) -> str:
    """Says what the first merge saved, and the last."""
    return (
        f"The first merge made {name} {shrinking.saved[0]:,} tokens shorter, the last"
        f" {shrinking.saved[-1]:,}: frequent pairs come first, so later merges remove fewer tokens. The CSV"
        " has every measure."
    )


def four_ways(cut: str, new_tokens: int, by_heart: bool) -> str:
    """Says what the four trainings were made on, and what each way is worth."""
    return (
        f"Four runs on {cut}, each for up to {new_tokens:,} new tokens. A vocabulary that starts from"
        " characters covers every character of the text, but cannot encode any other. With bytes nothing is"
        " ever unknown, but a character of several bytes must be merged first."
        + (" Where only one or two tokens are left, the text was memorised as a whole." if by_heart else "")
    )


# Compare tokenizers -----------------------------------------------------------------------------

NO_TOKENIZER = "Choose at least one tokenizer."
NO_TEXT = "The box is empty, so there are no tokens: type something, or choose an example."
TRAINED_ON = "The text on which our own tokenizers are trained. The published ones were trained on web text."
BY_LINE = (
    "Tokens of each line, tokenized by itself without its line break; the stronger the shade, the more tokens"
    " per character."
)
LOST_CHARACTER = "A dashed frame: a character outside the vocabulary."
LOST_SPACES = "Spaces belong to no token and are lost."
LOST_WORD = f"A dashed frame: out of vocabulary, so the model sees “some word”, not which one. {LOST_SPACES}"

SPECIAL = (
    "Special tokens encode no text at all. `{end}` marks the boundary between two documents: the *program*"
    " inserts its id between them for training, and a model that produces it has finished. Typed text must"
    " never produce it, or a user could end the document mid-instruction and begin another (prompt"
    " injection). So user text is encoded with `encode_ordinary`: the same characters become ordinary tokens."
)


def dearest(spread: Spread, most: str, least: str, entries: tuple[int, int]) -> str:
    """Returns the answer of the view: the tokenizer that needs most against the one that needs least, by
    their titles; `entries` are those of their vocabularies, in this order.
    """
    return (
        f"**{least} needs {spread.least_tokens:,} tokens, {most} {spread.most_tokens:,}: {spread.times:.1f}"
        f" times as many**, and {spread.work:.1f} times the work for attention. The price of fewer tokens is"
        f" a vocabulary of {entries[1]:,} entries instead of {entries[0]:,}."
    )


def cut_short(shown: int, characters: int) -> str:
    return (
        f"Only the tokens of the first {shown:,} characters are drawn; the numbers count all {characters:,}."
    )


def encoded_short(shown: int, characters: int) -> str:
    return f"Only the first {shown:,} of {counted(characters, 'character')} are encoded here."


def facts(cut: Cut, entries: int, piece: str = "token") -> str:
    """Returns two lines beside a row of tokens."""
    unknown = f", {cut.unknown:,} unknown" if cut.unknown else ""
    return f"{cut.tokens:,} {piece}{'s' * (cut.tokens != 1)}{unknown}\n{entries:,} entries"


def fewer_entries(requested: int, entries: int) -> str:
    """Says that a text was too short for a BPE of the requested size."""
    return f"{requested:,} entries were requested, but this text has no pair left to merge after {entries:,}."


def only(title: str, cut: Cut) -> str:
    """Returns the answer of the view where there is nothing to compare with."""
    return (
        f"**{title} splits it into {counted(cut.tokens, 'token')}**, {cut.characters_per_token:.2f}"
        " characters each."
    )


OUR_SPECIAL = "Computed live by tiktoken. Our own BPE has no special tokens: it was trained on one long text."
NO_SPECIAL = (
    "No published vocabulary is on this machine, so special tokens cannot be shown. Our own BPE has none: it"
    " was trained on one long text."
)

# What vocabulary size costs ---------------------------------------------------------------------

PASSAGE_HINT = "Our BPE is trained on this text, and the passage is its beginning."
LAYERS_HINT = "Used for the parameter count of the whole model."
NO_TOKENS = "This text has no tokens: choose another."


def trade_alt(count: int, name: str, others: list[Cost]) -> str:
    counts = "; ".join(f"{cost.name} {cost.tokens:,} tokens" for cost in others)
    return (
        f"Tokens of {count:,} words of {name}, falling, and embedding parameters, rising, against vocabulary"
        f" size: {counts}."
    )


def scores_alt(others: list[Cost]) -> str:
    counts = "; ".join(f"{cost.name} {cost.scores:,}" for cost in others)
    return f"Attention scores of one head against vocabulary size: {counts}."


def measured_on(passage: Passage, requested: int, name: str) -> str:
    """Says what was counted; `requested` words were to be, 0 for all."""
    of = f"the first {passage.words:,} words" if requested else "the whole text"
    fewer = f" It has only {passage.words:,} words." if requested > passage.words else ""
    return f"Measured on {of} of {name}: {counted(passage.characters, 'character')}.{fewer}"


def model_of(layers: int, d: int) -> str:
    """Returns the model whose parameters the table counts."""
    return (
        f"The model: {layers} block{'s' * (layers != 1)} of width {d:,}, $12\\,L\\,d^2$ parameters in the"
        " blocks and a few norms. *Tied*: one matrix serves as embedding and unembedding. *Untied*: the"
        " unembedding is a second matrix of V·d. T² is the number of attention scores that one head computes"
        " for the passage."
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
    return f"{text} {new.listed:,} whole words would still miss **{new.share:.1%}** of the words in new text."


def share_of(first: Cost, last: Cost, d: int) -> str:
    """Says what share of the whole model the embedding is."""
    return (
        f"At width {d:,} the embedding is {last.share:.0%} of the tied model with {last.name}, against"
        f" {first.share:.1%} with {first.name}. The blocks do not grow with V, so a large vocabulary costs a"
        " large model little, while a small model is mostly embedding."
    )


PERPLEXITY = (
    "A model's loss is measured per token, and a long token is harder to predict than a character. So the"
    " *perplexity* $e^{loss}$, the effective number of choices, cannot be compared across vocabularies. Loss"
    " divided by characters per token can: *bits per character*. The models in the table are all equally"
    " good, at 2 bits per character: $perplexity = 2^{\\,2\\,\\cdot\\,characters\\ per\\ token}$."
)

RULE_OF_THUMB = (
    "The rule of thumb assumes 5 characters and 1.3 tokens per word, and Tiny Shakespeare's 65 characters."
)


def thousand_words(name: str, characters: float, tokens: float | None) -> str:
    """Says how long a word is here, beside the rule of thumb."""
    tail = "" if tokens is None else f", which is {tokens:.2f} gpt2 tokens"
    return f"{RULE_OF_THUMB} In {name} a word, including spaces, averages {characters:.2f} characters{tail}."


def uncounted_line(line: str, characters: int) -> str:
    return (
        f"`{line}` has {characters} characters. gpt2's vocabulary is not on this machine, so its tokens"
        " cannot be counted now."
    )


def single_line(line: str, characters: int, isolated: int, with_empty: int, running: int) -> str:
    """Returns one line in three surroundings; `line` is safe Markdown, the others are numbers of tokens."""
    return (
        f"**“{line}” is {counted(characters, 'character')} and {counted(isolated, 'token')}** for gpt2."
        " Followed by an empty line"
        f" it is {with_empty}: the two line breaks are one token. In running text it is {running}: before"
        " another word gpt2's splitting rule separates them. So where a text ends changes its tokens."
    )


# Round trip -------------------------------------------------------------------------------------


def came_back(trip: RoundTrip) -> str:
    """Says what one tokenizer's ids are decoded to."""
    back = with_blanks(trip.back)
    if trip.same:
        return f"back: “{back}”, character for character"
    if trip.lost:
        named = ", ".join(f"“{character}”" for character in trip.lost[:6])
        return f"back: “{back}”. No id for {named}"
    return f"back: “{back}”. Spaces are not kept"


def round_trip(trips: dict[str, RoundTrip], alphabet: int, spells: tuple[str, RoundTrip] | None) -> str:
    """Returns the answer of the view; `trips` are by the tokenizer's name. `alphabet` is the number of known
    characters, `spells` the title and the trip of a tokenizer that starts from bytes.
    """
    whole, letters = sum(trip.same for trip in trips.values()), trips.get("characters")
    if letters is not None and letters.lost:
        spelled = (
            "" if spells is None else f": **{spells[0]}'s {spells[1].cut.tokens:,} ids decode to this text**"
        )
        return (
            f"**“{safe(letters.lost[0])}” is not one of the {alphabet:,} known characters, so it has no id**:"
            " encoding fails or drops it. Byte-level BPE starts from the 256 bytes and can spell"
            f" anything{spelled}."
        )
    if whole == len(trips):
        return (
            "**Every tokenizer restores the text exactly.** A character outside a vocabulary would change"
            " that: take the example “An é”."
        )
    return (
        f"**{whole} of {len(trips)} tokenizers restore the text exactly.** A word vocabulary keeps no spaces,"
        " and has no id for a new word. Characters outside an alphabet are lost, too: take the example “An"
        " é”."
    )


GLITCH = (
    "“ SolidGoldMagikarp” is a username so frequent in the training text of gpt2's tokenizer that it became"
    " **one token**. In the model's own training text it hardly occurred, so its embedding stayed nearly"
    " random, and models answered it with nonsense: a *glitch token* (Rumbelow and Watkins 2023)."
)

# How others learn their pieces: (name, how, who uses it)
OTHERS = (
    ("BPE (Sennrich et al. 2016)", "repeatedly merge the most frequent pair", "GPT-2 to GPT-4, LLaMA"),
    (
        "WordPiece (Schuster and Nakajima 2012)",
        "merge the pair that raises the likelihood most (often together, seldom apart); ## marks a"
        " continuation inside a word",
        "BERT",
    ),
    (
        "Unigram (Kudo 2018)",
        "start with too many pieces and prune those whose removal lowers the likelihood least; choose the"
        " most probable segmentation",
        "T5, XLNet",
    ),
    (
        "SentencePiece (Kudo and Richardson 2018)",
        "a library rather than an algorithm: BPE or Unigram on raw text, with a space written ▁",
        "T5, LLaMA 1 and 2",
    ),
)

# Tokens that encode no text: (model, before a text, after it)
BEGIN_END = (
    ("GPT-2", "<|endoftext|>", "<|endoftext|>"),
    ("BERT", "[CLS]", "[SEP]"),
    ("T5", "none", "</s>"),
    ("LLaMA 2", "<s>", "</s>"),
)
