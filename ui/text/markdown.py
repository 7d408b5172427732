"""Words that a person typed, or that came in a link or a file, made fit for the screen."""

from __future__ import annotations

import re

# Streamlit turns these into icons, arrows and links after Markdown's own escapes: :material/x:, ->, e@x.org,
# www.x.org.
_BREAKS = re.compile(r"(?<=[^\W\d])(?=\.\w)|(?<=\w)(?=:)|(?<=:)(?=\w)|(?<=\S)(?=@)|(?<=[-<>=~])(?=[-<>=~])")
_JOINER = "\u2060"  # has no width
# Markdown as Streamlit has it, which a site has not: icons, and colours around words.
_STREAMLIT = ((re.compile(r":material/\w+:\s?"), ""), (re.compile(r":[a-z-]+\[([^\]]*)\]"), r"\1"))


def safe(text: str) -> str:
    r"""Returns a person's words as Markdown that shows them as they are.

    >>> safe("a*b")
    'a\\*b'
    """
    marked = _BREAKS.sub(_JOINER, whole(text).replace("\n", " "))
    return "".join(f"\\{c}" if c in r"\`*_{}[]()#+-.!|<>$~:&" else c for c in marked)


def plain(markdown: str) -> str:
    """Returns Markdown of the app without what only Streamlit knows.

    >>> plain(":material/info: **Two** :blue[heads]")
    '**Two** heads'
    """
    for pattern, instead in _STREAMLIT:
        markdown = pattern.sub(instead, markdown)
    return markdown


def with_blanks(text: str) -> str:
    r"""Returns a text for a sentence that quotes it, in which is visible what a page drops: line breaks, and
    blanks at an end or beside another.

    >>> with_blanks("ROMEO:\n"), with_blanks("a  b ")
    ('ROMEO:⏎', 'a␣␣b␣')
    """
    return re.sub(r"^ | (?= )|(?<= ) | $", "␣", text.replace("\n", "⏎"))


def sentence(error: Exception) -> str:
    r"""Returns the message of one of our errors as a sentence (Markdown).

    >>> sentence(ValueError("no such head"))
    'No such head\\.'
    """
    text = str(error)
    return safe(f"{text[:1].upper()}{text[1:]}.")


def token_word(tokenizer: str) -> str:
    """Returns the name of a token of TrainConfig.tokenizer.

    >>> token_word("char"), token_word("byte"), token_word("bpe:512")
    ('character', 'byte', 'token')
    """
    return {"char": "character", "byte": "byte"}.get(tokenizer, "token")


def whole(text: str) -> str:
    r"""Returns a text that can be sent: half a character, which JSON in a file may hold, becomes a question
    mark.

    >>> whole("a\ud800b")
    'a?b'
    """
    return text.encode("utf-8", "replace").decode("utf-8")
