"""Sentences (Markdown) about training data and uploaded models, from values that they are given."""

from __future__ import annotations

from ui.text.numbers import counted

TEXT_HINT = (
    "Tiny Shakespeare, the Python manual, your own text (pasted or uploaded as UTF-8), problems with"
    " answers that can be checked, or pairs: a source with its target, or a line with its speaker."
)
LEARNING = "Training the tokenizer on the text"
FIRST = "The tokenizer has to be trained on this text first."
SETTINGS = "Settings that solve it"
INSTEAD = "{}. The Python manual is used instead."
MISSING = (
    "Tiny Shakespeare is not on this machine and could not be downloaded, so the Python manual is used:"
    " it needs no network."
)
DOWNLOADING = "Downloading Tiny Shakespeare (1.1 MB), once"
YOURS, YOURS_HINT = "Your text", "Paste at least a few thousand characters: the more, the better."
PASTE, UPLOAD = "Paste a text to train on.", "Upload a text to train on."
FILE = "A text file (UTF-8)"
BEGINNING = "The beginning, with a bar between tokens:"


def not_in_link(most: int, longer: str) -> str:
    """Says how long a text may be; `longer`: what becomes of a much longer one."""
    return f"Your text is too long to be part of the link. At most {most:,} characters; {longer}"


def over(length: int, most: int) -> str:
    return (
        f"The text has {counted(length, 'character')}; at most {most:,} are allowed here. Shorten it by"
        f" {length - most:,}."
    )


def file_too_large(name: str, megabytes: int) -> str:
    return f"{name} is too large: at most {megabytes} MB are allowed here."


def not_utf8(name: str, byte: int) -> str:
    return (
        f"{name} is not UTF-8 text (byte {byte:,} is not valid): save it as UTF-8 plain text and upload it"
        " again."
    )


def null_bytes(name: str) -> str:
    return (
        f"{name} is not text: it contains null bytes, as pictures, archives and office documents do. Save it"
        " as plain text."
    )


def empty(name: str) -> str:
    return f"{name} is empty."


def still_in_use(length: int) -> str:
    return f"Still in use: {counted(length, 'character')} uploaded earlier."


def split(train: int, validation: int) -> str:
    return f"Train on the first **{train:,}**, validate on the last **{validation:,}**."


def characters(count: int, distinct: int, parts: str) -> str:
    """Describes a text of which a character is a token; `parts`: how it is split."""
    return f"{counted(count, 'character', bold=True)}, **{distinct}** distinct. {parts}"


def tokens(count: int, pieces: int, noun: str, each: float, vocabulary: str, parts: str) -> str:
    """Describes a text cut into tokens of so many characters `each`."""
    return (
        f"**{count:,}** characters make **{pieces:,}** {noun} of **{each:.2f}** characters on average, from a"
        f" vocabulary of {vocabulary}. {parts}"
    )


def vocabulary_of(size: int, requested: int) -> str:
    """Returns a vocabulary's size, with what was requested where the text has no more pairs to merge."""
    fewer = f" ({requested:,} requested, but this text has no more pairs)" if size < requested else ""
    return f"**{size:,}**{fewer}"


# A model that was downloaded earlier

CHECKING = "Checking the model …"
DOWNLOADED, ZIP = "Use a model downloaded earlier", "A zip from the Model button above"
BYTES = "with bytes as tokens"
COPY_SETTINGS = "Copy its settings into the controls"
LINE_BREAK = "⏎ is a line break."


def too_large(megabytes: int) -> str:
    return f"This file is too large: at most {megabytes} MB are allowed here."


def reached(loss: float, quick: bool) -> str:
    return f", validation loss {loss:.3f}" + (" (a quick estimate)" if quick else "")


def vocabulary(size: int) -> str:
    return f"vocabulary of {size:,} tokens (BPE)"


def alphabet(size: int) -> str:
    return f"alphabet of {counted(size, 'character')}"


def complete(parameters: int, layers: int, width: int, cut: str, loss: str) -> str:
    """Describes a model; `cut`: its tokens, `loss`: what it reached."""
    return (
        f"A complete model: {counted(parameters, 'parameter', bold=True)}, {counted(layers, 'layer')},"
        f" width {width}, {cut}{loss}."
    )
