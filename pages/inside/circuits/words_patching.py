"""The answer of patching in words: where it sits and when it moves, or which patches count most."""

from __future__ import annotations

from engine.measure.circuits.patching import (
    Patching,
    Site,
    Station,
    Verdict,
    stations,
    strongest_patches,
    verdict,
)
from engine.measure.circuits.prompt_pairs import Contrast
from ui.text.markdown import safe
from ui.text.numbers import counted, minus

SITES: dict[Site, str] = {
    "resid_pre": "stream",
    "attn_out": "attention",
    "ffn_out": "feed-forward",
    "z": "heads",
}
OF_SITE: dict[Site, str] = {
    "resid_pre": "the stream after that block",
    "attn_out": "what attention writes",
    "ffn_out": "what the feed-forward network writes",
    "z": "the output of one head, at all tokens",
}
PROMPTS, YOUR_OWN, SITE = "Prompts", "Your own", "What is patched"
SITE_HINT = (
    "Stream: the residual stream of one token after a block. Attention, feed-forward: what that sublayer"
    " writes for one token. Heads: the output of one head, patched at all tokens at once."
)
PATCHED = "Patching each token in each block"
NO_PROMPTS = "Write two prompts with the same number of tokens, and the answer to each."
PROMPT_NAMES = ("First prompt", "Second prompt")
ANSWER_NAMES = ("First answer", "Second answer")
ANSWER_HINTS = tuple(
    f"What should come after the {which} prompt. A new word begins with a space."
    for which in ("first", "second")
)
HEAD, TOKEN, TOKEN_TITLE = "head", "token", "token (bold: the first prompt's)"
TOKEN_HOVER = "token “%{customdata}”"
LITTLE = 0.1  # of the answer: less is not worth a name

_DOUBTS: dict[Verdict, str] = {
    "tells": "",
    "hardly": (
        "This model **hardly distinguishes the two prompts**: the logit difference changes by only {span:.2f}"
        " nats, so there is little to restore. "
    ),
    "swapped": "The answers are swapped: the second prompt favours {a} more than the first does. ",
    "always first": "The model prefers {a} after *both* prompts, less so after the second. ",
    "always second": "The model prefers {b} after *both* prompts, less so after the first. ",
}


ALL = 0.995  # of the answer: it would be written as 1.00


def sentence(patching: Patching, labels: list[str], names: tuple[str, str]) -> str:
    """Returns where it sits and where it moves, or which patches count most (Markdown)."""
    a, b = (f"“{safe(name)}”" for name in names)
    doubt = _DOUBTS[verdict(patching.contrast)].format(span=abs(patching.contrast.span), a=a, b=b)
    if patching.site == "resid_pre":
        return doubt + _way(patching, labels)
    return doubt + _parts(patching, labels)


def cut(name: str, tokens: list[str]) -> str:
    """Shows how a prompt is cut into tokens."""
    return f"{name}, {counted(len(tokens), 'token')}: {' · '.join(map(safe, tokens))}"


def only_first(answer: str, tokens: int, first: str) -> str:
    return (
        f":material/info: “{safe(answer)}” is {tokens} tokens: only the first, “{safe(first)}”, is compared."
    )


def continues(answer: str) -> str:
    return (
        f":material/info: “{safe(answer)}” continues the last word. A new word begins with a space:"
        f" “␣{safe(answer)}”."
    )


def map_alt(column: str, site: Site) -> str:
    return (
        f"Map of blocks against {column}s: share of the first answer restored when {OF_SITE[site]} of the"
        " first prompt is patched into the second prompt's run."
    )


def untouched(contrast: Contrast, names: tuple[str, str], guesses: tuple[str, str]) -> str:
    """Says what the model answers to each prompt with nothing patched (Markdown)."""
    a, b, first_guess, second_guess = map(safe, (*names, *guesses))
    first, second = (minus(f"{lead:+.2f}") for lead in (contrast.clean, contrast.corrupted))
    return (
        f"Logit of “{a}” − logit of “{b}”, nothing patched:\n- first prompt **{first}**; the model would"
        f" write “{first_guess}”\n- second prompt **{second}**; the model would write “{second_guess}”"
    )


def _way(patching: Patching, labels: list[str]) -> str:
    way, top = stations(patching), len(patching.restored) - 1
    held = [station for station in way if station.position is not None]
    if not held:
        return "The difference is spread over several tokens: no single one carries half of it."
    first, last = held[0], held[-1]
    begin = f"The difference is carried by {_at(first, labels, top)}"
    if len(held) == 1:
        if first.position == len(labels) - 1 and (first.first, first.last) == (0, top):
            return f"{begin}: the prompts differ in their last token, so nothing has to be moved."
        return f"{begin}." + ("" if first.last == top else " After that, no single token carries half of it.")
    between = ""
    if len(held) > 2:
        between_positions = dict.fromkeys(s.position for s in held[1:-1] if s.position is not None)
        others = [
            f"“{safe(labels[p])}”" for p in between_positions if p not in (first.position, last.position)
        ]
        between = f", then by {', '.join(others)}" if others else ", with gaps"
    return f"{begin}{between}, and by {_at(last, labels, top)}."


def _at(station: Station, labels: list[str], top: int) -> str:
    assert station.position is not None
    token = f"**{safe(labels[station.position])}**"
    share = "all of it" if station.least >= ALL else f"at least {station.least:.2f} of it"
    return f"{token} {_blocks(station, top)} ({share})"


def depth_names(rows: int) -> list[str]:
    """Returns where the stream stands before blocks 0, 1, ...: named by what came last, as in the view of a
    fact.

    >>> depth_names(3)
    ['the embedding', 'after block 0', 'after block 1']
    """
    return ["the embedding", *(f"after block {i}" for i in range(rows - 1))]


def _blocks(station: Station, top: int) -> str:
    names = depth_names(top + 1)
    first, last = names[station.first], names[station.last]
    start, end = (name.removeprefix("after ") for name in (first, last))
    until = f"up to **{end}**"
    if (station.first, station.last) == (0, top):
        return "after **every block**"
    if station.last == top:
        return f"from **{start}** onwards"
    if station.first == 0:
        return f"only in **{last}**" if station.last == 0 else until
    return f"only **{first}**" if station.first == station.last else f"from **{start}** {until}"


def _parts(patching: Patching, labels: list[str]) -> str:
    cells = strongest_patches(patching)
    top = cells[0]

    def name(layer: int, index: int) -> str:
        if patching.site == "z":
            return f"head {layer}.{index}"
        return f"block {layer} at “{safe(labels[index])}”"

    if top.share < LITTLE:
        return (
            f"No single patch restores more than {top.share:.2f}: either many components share the work, or"
            " it is done elsewhere."
        )
    rest = ", ".join(f"{name(c.layer, c.index)} ({c.share:.2f})" for c in cells[1:] if c.share >= LITTLE)
    more = f" Next: {rest}." if rest else ""
    if patching.site == "ffn_out" and top.layer == 0:
        more += " The first network acts as part of the embedding, so this mostly restores the word."
    part = "" if patching.site == "z" else f"the {SITES[patching.site]} output of "
    return (
        f"On its own, {part}**{name(top.layer, top.index)}** restores **{top.share:.2f}** of the"
        f" answer.{more}"
    )
