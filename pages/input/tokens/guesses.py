"""Guesses before the views of Tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.data.tokenizers.bpe_watch import Watched
from engine.lab.guesses import tokens
from pages.input.tokens.words_examples import EXAMPLES
from ui.guess import Choice, Guess, offered
from ui.text.tokens import show_bytes

FAMILY = "👩‍👩‍👧‍👦"


def next_merge(watched: Watched, step: int) -> Guess | None:
    """Returns which pair is merged after the one that the player shows."""
    merge = tokens.next_merge(watched, step)
    if merge is None:
        return None
    table = watched.tokenizer.tokens
    names = [" + ".join(show_bytes(table[i]) for i in pair) for pair in merge.pairs]
    most = merge.counts[merge.right]
    choices = tuple(
        Choice(name, _merged(most) if at == merge.right else _passed(count, most))
        for at, (name, count) in enumerate(zip(names, merge.counts, strict=True))
    )
    return Guess(
        f"Merge {step + 1} is shown. Which pair is merged next?",
        choices,
        merge.right,
        f"Merge {step + 2} is {names[merge.right]}, {most} times. Press +1 to see it.",
    )


def _merged(count: int | None) -> str:
    return f"After this merge it occurs {count} times, more often than any other pair."


def _passed(count: int | None, most: int | None) -> str:
    if count is None:
        return "This merge used up many of its symbols: pairs are recounted after each merge."
    if count == most:
        return f"It also occurs {count} times: a tie-breaking rule decides between equally frequent pairs."
    return f"After this merge it occurs only {count} times: pairs are recounted each time."


def family(name: str, encode: Callable[[str], Sequence[int]]) -> Guess | None:
    """Makes a guess about the tokens into which the tokenizer `name` cuts one picture of a family."""
    truth = tokens.picture(FAMILY, encode)
    if truth is None:
        return None
    n = truth.numbers
    replies = {
        "one": "A tokenizer reads bytes, not pictures: one symbol on the screen may be many of them.",
        "character": "These are its characters (four people and three joiners); each has three or"
        " four bytes.",
        "other": "Some of its byte sequences were frequent enough to be merged, others stay in pieces.",
        "byte": "That would be one per byte, but some byte sequences were frequent enough to be merged.",
    }
    in_order = sorted(truth.offered, key=n.__getitem__)
    choices, right = offered(
        truth,
        {kind: Choice(f"{n[kind]:.0f}", replies[kind]) for kind in in_order},
        f"{replies['other']}" if truth.right == "other" else "That is the count here.",
    )
    return Guess(
        f"How many {name} tokens is this one emoji: {FAMILY}?",
        choices,
        right,
        f"{n['found']:.0f} tokens for {n['character']:.0f} characters and {n['byte']:.0f} bytes. The"
        " “Emoji” example, now in the box, contains it.",
        {"compare_text": EXAMPLES["Emoji"][0]},
    )
