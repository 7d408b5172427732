"""A text as a model reads it: cut into its tokens, without what it does not know, no longer than a screen
takes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import cache
from random import Random

from engine.config import ModelConfig
from engine.data.tokenizers import Tokenizer, written
from engine.data.tokenizers.bpe import BpeTokenizer
from studies.pairs.paired import PAIR_TASKS
from studies.pairs.tokenizer import SourceTokenizer
from studies.tasks.all import MODELLED
from studies.tasks.task import examples
from studies.weights.pretrained.pieces import WORD_PIECE
from studies.weights.pretrained.vocabulary import PretrainedTokenizer
from ui.text.markdown import whole
from ui.text.numbers import counted

MAX_TOKENS = 128  # that are looked at: more do not fit on a screen


RECORDING_BYTES = 128 << 20  # of one recording: a model may have hundreds of heads, and as many words


MAX_TEXT = 2000  # characters of typed text


SAID = 12  # unknown characters that a sentence names


TASK_EXAMPLES = 4  # problems that the bar offers


EXAMPLES = {
    "First Citizen": "First Citizen:\nBefore we proceed any further, hear me speak.\n",
    "King Richard": "KING RICHARD II:\nNow is the winter of our discontent",
    "Romeo": "ROMEO:\nBut, soft! what light through yonder window breaks?\n",
    "Repeats": "the moon and the moon and the moon and the moon and",
}


FIRST_TEXT = EXAMPLES["First Citizen"]


ENGLISH = {  # for models that were trained on much of it
    "A fact": "The capital of France is",
    "A story": (
        "The old library stood at the end of the street. Every morning, the librarian opened its heavy doors,"
        " and every evening she closed them again. Nobody in the town"
    ),
    "Names": "When Mary and John went to the store, John gave a drink to",
    "Keys": "The keys to the old cabinet",
    "Long words": "The extraordinarily unbelievable internationalization of",
    "Repeats": EXAMPLES["Repeats"],
}


# Kinds of models: one that fills in masked tokens; before the task of an encoder-decoder
GAPS, PAIR = "gaps", "pair-"


WITH_GAPS = {  # about as many as such a model learned to fill
    "Henry": "KING HENRY:\nOnce m_re unto the bre_ch, dear fri_nds",
    "Hamlet": "HAMLET:\nTo b_ or not to be, th_t is the qu_stion",
    "Juliet": "JULIET:\nO Romeo, Rom_o! wheref_re art th_u",
}


def examples_of(kind: str) -> dict[str, str]:
    """Returns the texts that a model of that kind can read, by their names: `words` for one that was trained
    on much English, the name of a synthetic task, GAPS, PAIR and the task of an encoder-decoder, else
    letters.
    """
    if kind == GAPS:
        return WITH_GAPS
    if kind.startswith(PAIR):
        return _sources(kind.removeprefix(PAIR))
    if kind not in MODELLED:
        return ENGLISH if kind == "words" else EXAMPLES
    return {words.strip(): words for words in examples(MODELLED[kind], TASK_EXAMPLES)}


@cache
def _sources(task: str) -> dict[str, str]:
    drawn = [PAIR_TASKS[task].draw(Random(seed)) for seed in range(TASK_EXAMPLES)]
    return {text: text for text in drawn}


FIRST_WORDS = ENGLISH["A fact"]


def show_token(text: str) -> str:
    """Returns a token with its blanks made visible.

    >>> show_token(" "), show_token("a\\n")
    ('␣', 'a⏎')
    """
    return whole(text).replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥") or "∅"


def most_tokens(config: ModelConfig) -> int:
    """Returns how many tokens are looked at: what the context, a screen and the server's memory allow. At
    least 8, or the context.

    >>> most_tokens(ModelConfig(context=256))
    128
    >>> most_tokens(ModelConfig(context=256, d_model=64, n_layers=64, n_heads=64))
    48
    """
    c = config.resolved()
    square = 3 * 4 * c.n_layers * c.n_heads  # scores, masked scores and pattern, float32
    # A token: about twelve vectors of the stream's width in a block, three of the network's, and the logits.
    linear = 4 * (c.n_layers * (12 * c.d_model + 3 * c.d_ff) + c.vocab_size)
    fits = (math.sqrt(linear**2 + 4 * square * RECORDING_BYTES) - linear) / (2 * square)
    return min(c.context, MAX_TOKENS, max(8, int(fits)))


def read(
    text: str, tokenizer: Tokenizer, limit: int, letters: int = 0
) -> tuple[tuple[int, ...], str, list[str]]:
    """Returns (ids, what of the text the model sees, sentences about what was left out): at most `limit`
    tokens, never none. The text is what was taken of one of so many `letters`, where these are more.

    >>> from engine.data.tokenizers.char import CharTokenizer
    >>> read("abcx", CharTokenizer("abc"), 2)[:2]
    ((0, 1), 'ab')
    """
    notes, taken = [], len(text)
    text = text.replace("\r\n", "\n")
    unread = tokenizer.unread(text) if isinstance(tokenizer, PretrainedTokenizer) else []
    unknown = [] if unread else tokenizer.unknown(text)
    readable = _without(text, unknown, tokenizer)
    if unread and isinstance(tokenizer, PretrainedTokenizer):
        notes.append(
            f"This model's {_known(tokenizer)} does not have {_listed(unread)}:"
            f" it reads {tokenizer.unknown_token} there."
        )
    if unknown and readable:
        notes.append(
            f"This model's {_known(tokenizer)} does not have {_listed(unknown)}, which is left out here."
        )
    if not readable or (isinstance(tokenizer, PretrainedTokenizer) and not tokenizer.encode(readable)):
        fallback = _without(FIRST_TEXT, tokenizer.unknown(FIRST_TEXT), tokenizer)
        fallback = fallback or tokenizer.decode([0, tokenizer.vocab_size - 1])
        where = _known(tokenizer).partition(" ")[0]
        what: str = tokenizer.by if isinstance(tokenizer, SourceTokenizer) else "characters"
        why = f"This model's {where} has none of these {what}" if text else "The text is empty"
        notes.append(f"{why}: “{show_token(fallback[:40])}” is used instead.")
        readable = fallback
    ids = tokenizer.whole(readable) if isinstance(tokenizer, SourceTokenizer) else tokenizer.encode(readable)
    if letters > taken:
        notes.append(f"The text has {counted(letters, 'character')}; the first {taken:,} are used.")
    if len(ids) > limit:
        what = "They are" if letters > taken else "The text has"
        notes.append(
            f"{what} {counted(len(ids), 'token')}; the first {limit} are used, the limit of this model and"
            " page."
        )
        if isinstance(tokenizer, SourceTokenizer):
            ids = tokenizer.whole(readable, limit)
        else:
            ids = _whole(ids[:limit], tokenizer)
        readable = tokenizer.decode(ids)
    return tuple(ids), readable, notes


def _without(text: str, unknown: Collection[str], tokenizer: Tokenizer) -> str:
    if isinstance(tokenizer, SourceTokenizer):
        return tokenizer.without(text, unknown)
    return "".join(c for c in text if c not in set(unknown))


def _listed(unknown: Sequence[str]) -> str:
    """At most SAID of them."""
    return " ".join(map(show_token, unknown[:SAID])) + (" …" if len(unknown) > SAID else "")


def _known(tokenizer: Tokenizer) -> str:
    """Says how much a model knows.

    >>> from engine.data.tokenizers.bpe import train
    >>> _known(train("abab", 257))
    'vocabulary of 257 tokens'
    """
    if isinstance(tokenizer, PretrainedTokenizer):
        what = "word pieces" if tokenizer.writing is WORD_PIECE else "tokens"
        return f"vocabulary of {tokenizer.vocab_size:,} {what}"
    if isinstance(tokenizer, BpeTokenizer) and tokenizer.merges:
        return f"vocabulary of {tokenizer.vocab_size:,} tokens"
    if isinstance(tokenizer, SourceTokenizer):
        return f"vocabulary of {len(tokenizer.symbols)} {tokenizer.by}"
    return f"alphabet of {tokenizer.vocab_size} characters"


def token_named(typed: str, tokenizer: Tokenizer) -> list[int]:
    r"""Returns the ids of a word that a person typed where one token is wanted; more than one where the model
    cuts it, none for an empty text.

    Models of words have most of them with the blank before: so "Paris" is “␣Paris” where that is one token,
    and what stands in quotes is taken as it is.

    >>> from engine.data.tokenizers.char import CharTokenizer
    >>> token_named("b", CharTokenizer(" ab")), token_named("␣", CharTokenizer(" ab"))
    ([2], [0])
    """
    text = typed.replace("␣", " ").replace("⏎", "\n").replace("⇥", "\t")
    quoted = len(text) > 2 and text[0] == text[-1] == '"'
    text = text[1:-1] if quoted else text
    unknown = set(tokenizer.unknown(" " + text))
    bare = list(tokenizer.encode(_without(text, unknown, tokenizer)))
    if quoted or not text.strip() or text[0].isspace() or " " in unknown:
        return bare
    spaced = list(tokenizer.encode(_without(" " + text, unknown, tokenizer)))
    return bare if len(bare) < len(spaced) else spaced


def _whole(ids: list[int], tokenizer: Tokenizer) -> list[int]:
    """Without the tokens at the end that are the beginning of a character, where there is anything before
    them.
    """
    for count in range(len(ids), max(0, len(ids) - 4), -1):  # a character has at most four bytes
        if written(tokenizer, ids[:count]) == tokenizer.decode(ids[:count]):
            return ids[:count]
    return ids
