"""Dates as people write them, into ISO 8601, letter by letter: 21/11/26 -> 2026-11-21.

The day stands before the month wherever both are numbers. A year of two digits lies from 1950 to 2049: 00 to
49 are of this century, 50 to 99 of the last.
"""

from __future__ import annotations

import random
import re
from datetime import date, timedelta

from engine.errors import TaskError
from studies.pairs.paired.task import Aligned, PairTask, rules_of

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
FIRST, LAST = date(1950, 1, 1), date(2049, 12, 31)
PIVOT = 50  # years of two digits from here on are of the last century

# How dates are written: {d} 3, {dd} 03, {nth} 3rd, {m} and {mm} the month's number, {name} and {short} its
# name, {y} 2026, {yy} 26, {weekday} Sunday.
FORMATS = (
    "the {nth} of {name} {y}", "the {nth} of {name}, {y}", "{nth} {name} {y}", "{name} {nth}, {y}",
    "{name} {d}, {y}", "{short} {d}, {y}", "{d} {name} {y}", "{d} {short} {y}", "{d} {short} '{yy}",
    "{weekday}, {d} {name} {y}", "{weekday} the {nth} of {name} {y}", "{d}/{m}/{yy}", "{dd}/{mm}/{yy}",
    "{dd}/{mm}/{y}", "{d}.{m}.{y}", "{dd}.{mm}.{yy}", "{dd}-{mm}-{y}",
)  # fmt: skip

_NUMBER = r"(?P<{}>[0-9]{{{}}})"
_FIELDS = {
    "d": _NUMBER.format("day", "1,2"),
    "dd": _NUMBER.format("day", 2),
    "nth": _NUMBER.format("day", "1,2") + "(?:st|nd|rd|th)",
    "m": _NUMBER.format("month", "1,2"),
    "mm": _NUMBER.format("month", 2),
    "name": f"(?P<month>{'|'.join(MONTHS)})",
    "short": f"(?P<month>{'|'.join(name[:3] for name in MONTHS)})",
    "y": _NUMBER.format("year", 4),
    "yy": _NUMBER.format("year", 2),
    "weekday": f"(?:{'|'.join(WEEKDAYS)})",
}


def nth(day: int) -> str:
    """
    >>> nth(1), nth(12), nth(23)
    ('1st', '12th', '23rd')
    """
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{day}{'th' if 10 < day < 20 else endings.get(day % 10, 'th')}"


def written(day: date, form: str) -> str:
    """Returns a date in one of FORMATS.

    >>> written(date(2026, 11, 21), "the {nth} of {name} {y}"), written(date(1999, 3, 3), "{d}/{m}/{yy}")
    ('the 21st of November 2026', '3/3/99')
    """
    name = MONTHS[day.month - 1]
    return form.format(
        d=day.day,
        dd=f"{day.day:02d}",
        nth=nth(day.day),
        m=day.month,
        mm=f"{day.month:02d}",
        name=name,
        short=name[:3],
        y=day.year,
        yy=f"{day.year % 100:02d}",
        weekday=WEEKDAYS[day.weekday()],
    )


def _pattern(form: str) -> re.Pattern[str]:
    pieces = re.split(r"{(\w+)}", form)  # text, field, text, field ...
    return re.compile("".join(_FIELDS[each] if i % 2 else re.escape(each) for i, each in enumerate(pieces)))


_MONTH_OF = {spelling: i + 1 for i, name in enumerate(MONTHS) for spelling in (name, name[:3])}
_PATTERNS = {form: _pattern(form) for form in FORMATS}


def read(source: str) -> tuple[date, re.Match[str]]:
    """Reads a date and the positions of its parts. Raises TaskError for another text or no day."""
    wrong = f"“{source[:40]}” is not a date for this task: type one such as “the 3rd of March 1999”"
    for form, pattern in _PATTERNS.items():
        if match := pattern.fullmatch(source):
            day = _day(source, match)
            if written(day, form) == source:
                return day, match
            wrong = f"“{source[:40]}” is inconsistent: that would be “{written(day, form)}”"
    raise TaskError(wrong)


def _day(source: str, match: re.Match[str]) -> date:
    year, month = int(match["year"]), _MONTH_OF.get(match["month"]) or int(match["month"])
    if len(match["year"]) == 2:
        year += 1900 if year >= PIVOT else 2000
    try:
        day = date(year, month, int(match["day"]))
    except ValueError as error:
        raise TaskError(f"“{source[:40]}” is not a real date") from error
    if not FIRST <= day <= LAST:
        raise TaskError(f"the year {year} is not between {FIRST.year} and {LAST.year}")
    return day


def answer(source: str) -> Aligned:
    """Returns the ISO date with its alignment. A digit comes from the same digit of the source; of a month's
    name, from all its letters; a century that is not written, from the tens of the year.
    """
    day, match = read(source)
    alignment: list[tuple[int, ...]] = []
    for name, digits in (("year", 4), ("month", 2), ("day", 2)):
        places = range(*match.span(name))
        if len(places) == digits and match[name].isdigit():
            alignment += [(place,) for place in places]
        elif name == "year":
            alignment += [(places[0],), (places[0],), (places[0],), (places[1],)]
        else:
            alignment += [tuple(places)] * 2  # one digit, or a name
        alignment.append(())  # the stroke
    return Aligned(source, day.isoformat(), tuple(alignment[:-1]))


def draw(draws: random.Random) -> str:
    """Draws a day from FIRST to LAST in one of FORMATS."""
    day = FIRST + timedelta(days=draws.randrange((LAST - FIRST).days + 1))
    return written(day, draws.choice(FORMATS))


DATES = PairTask(
    name="dates",
    title="Dates",
    rule="Write a date, however it is given, as year, month and day.",
    by="letters",
    form=(
        f"a date from {FIRST.year} to {LAST.year}, such as “the 3rd of March 1999”, “21/11/26” or"
        " “Nov 21, 2026”"
    ),
    draw=draw,
    answer=answer,
    key=lambda source: read(source)[0].isoformat(),
    rules=rules_of("dates", answer),
)
