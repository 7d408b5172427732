"""The smallest tasks with a source and a target: the same letters in another order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.errors import TaskError
from studies.pairs.paired.task import Aligned, PairTask

Order = Callable[[str], Sequence[int]]  # of a source: from which of its places each letter of the target is


def reordering(
    name: str,
    title: str,
    rule: str,
    letters: str,
    shortest: int,
    longest: int,
    order: Order,
    alike: bool = False,
) -> PairTask:
    """Makes a task of `shortest` to `longest` letters, all lengths equally likely. `alike`: any position that
    holds the letter serves as its source, since the rule looks at letters and not at positions.
    """
    form = f"{shortest} to {longest} characters from {letters[0]} to {letters[-1]}"

    def answer(source: str) -> Aligned:
        if not shortest <= len(source) <= longest or not set(source) <= set(letters):
            raise TaskError(f"“{source[:40]}” is not a source for this task: type {form}")
        places = order(source)
        sources = [
            tuple(j for j in range(len(source)) if source[j] == source[i]) if alike else (i,) for i in places
        ]
        return Aligned(source, "".join(source[i] for i in places), tuple(sources))

    return PairTask(
        name=name,
        title=title,
        rule=rule,
        by="letters",
        form=form,
        draw=lambda draws: "".join(draws.choices(letters, k=draws.randint(shortest, longest))),
        answer=answer,
    )


def backwards(source: str) -> Sequence[int]:
    return range(len(source))[::-1]


def alphabetical(source: str) -> Sequence[int]:
    return sorted(range(len(source)), key=lambda i: source[i])
