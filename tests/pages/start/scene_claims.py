"""What a scene of a course says in numbers, quotations and names, and whether the screen that it opens says so too.

Read of a scene are its title, its text, its notes, and of its question the text, the right answer and why. The rules:

- A count is a number with one of the three words after it, or the one before: “four blocks”, “width 128”. The screen
  must count the same thing: in a sentence, in what a component got, or by the different values of a column of a
  figure's table. SAME lists words for one thing.
- Any other number must be on the screen, rounded as the scene rounds it; a percentage as a percentage. One below
  SMALL is found by chance on any screen, so it needs its word, a decimal point, or an “about”.
- What is quoted in “ ”, and a name (a word with a capital letter within a sentence), must be on the screen.
- A shape, (5, 1,000), must be the end of a shape there; a formula, 4d², must be there without its spaces.
- Not read: “one”, ordinals, a title's section number (13.2), minutes and hours, weights that “sum to 1”; and no
  names in notes, which lead elsewhere.
- What cannot be on the screen (a year, a lecture's number, what the speaker asks for) is marked in the scene, each
  phrase before its reason: `# not on screen: 1.88 (the lecture's); four layers`. A mark that marks nothing is wrong.

When each number of the eight courses was made one larger, one smaller and two larger, 365 of 414 were red; most of the
others are on the same screen for something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.pages.helpers import without_escapes
from ui.tour.courses import Scene

if TYPE_CHECKING:
    from tests.pages.start.scene_screen import Screen

SMALL = 13
LARGE = 1000  # from here on a number in a figure's table is no chance
WORDS = {
    2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine", 10: "ten",
    11: "eleven", 12: "twelve", 13: "thirteen", 14: "fourteen", 15: "fifteen", 16: "sixteen",
    17: "seventeen", 18: "eighteen", 19: "nineteen", 20: "twenty", 30: "thirty",
}  # fmt: skip
NUMBERS = {word: number for number, word in WORDS.items()}
SHARES = {
    "half": 1 / 2,
    "two thirds": 2 / 3,
    "a third of": 1 / 3,
    "a quarter of": 1 / 4,
    "a seventh of": 1 / 7,
}
KNOWN = {"Transformer"}  # what everything here is about
FILLERS = {"of", "the", "a", "an", "and", "or", "at", "in", "with", "to", "that", "is", "are", "it"}
CLOSE = 0.006  # of a percentage that stands for two thirds
SCALES = {"million": 1e6, "billion": 1e9}
# Words for one thing, or for what a scene calls so: a picture of a head is a square, a rung is a model.
SAME = (
    {"block", "layer", "n_layer"},
    {"head", "square", "n_head", "way"},
    {"run", "recipe", "way"},
    {"rung", "model"},
    {"scheme", "encoding", "model"},
    {"token", "query", "id", "tokens"},
    {"number", "d_model", "dimension", "character", "term", "wide", "width"},
    {"piece", "code", "function"},
    {"vocab", "vocabulary", "token", "entry", "score", "character"},
    {"snapshot", "step", "stop"},
)
_DIGITS = r"\d[\d,]*(?:\.\d+)?"
_NUMBER = re.compile(
    rf"(?<![\w.,×√^/-])(?:({_DIGITS})(?!\w|\.\d)(%?)|({'|'.join(NUMBERS)})(?![\w-]))", re.IGNORECASE
)
_FORMULA = re.compile(r"\d+(?:\s?·\s?\w+²?)+|\d+\s?[A-Za-z]²|\d+[A-Za-z]\b|×\d+|\bN\(0, 1\)|√\d+|\d+²")
_SHAPE = re.compile(rf"\({_DIGITS}(?:, {_DIGITS})+\)")
_QUOTED = re.compile("“([^”]+)”")
_NAME = re.compile(r"(?<=[a-z,;:)√] )[A-Z][\w-]*[a-z0-9]\w*")
_IDIOM = re.compile(r"\bsums? to 1\b|\b(?:half an?|[\w-]+) (?:seconds?|minutes?|hours?)\b", re.IGNORECASE)
_MARK = re.compile(r"^\s+# not on screen: (.+)$", re.MULTILINE)


def marks(file: Path) -> list[tuple[str, ...]]:
    """Returns, scene by scene, the phrases that are marked as not on screen."""
    _, *scenes = re.split(r"^  - title:", file.read_text("utf-8"), flags=re.MULTILINE)
    return [
        tuple(phrase_of(part) for line in _MARK.findall(each) for part in line.split("; ")) for each in scenes
    ]


def phrase_of(marked: str) -> str:
    """
    >>> phrase_of("N(0, 1) (how the tables are drawn)"), phrase_of("1.88 (the lecture's)"), phrase_of("four layers")
    ('N(0, 1)', '1.88', 'four layers')
    """
    return re.sub(r" \([^()]*\)$", "", marked.strip())


def missing(scene: Scene, marked: Iterable[str], screen: Screen) -> list[str]:
    """Returns what the scene says and the screen does not."""
    asked = scene.question
    question = [asked.text, asked.answers[asked.right], asked.why] if asked else []
    texts = [re.sub(r"^[\d.]+ ", "", scene.title), scene.text, *question]
    notes = [scene.notes]
    faults = []
    for phrase in marked:
        if not any(phrase in text for text in texts + notes):
            faults.append(f"“{phrase}” is marked and not said")
        texts, notes = ([text.replace(phrase, "—") for text in each] for each in (texts, notes))
    for text in texts:
        faults += unsaid(text, screen, names=True)
    return faults + unsaid(notes[0], screen, names=False)


def unsaid(text: str, screen: Screen, names: bool) -> list[str]:
    """Returns the claims of a text that the screen does not hold."""
    seen = plain(screen.text)
    faults = [quoted for quoted in _QUOTED.findall(text) if plain(quoted.strip("_… ")) not in seen]
    text = _QUOTED.sub("—", text)
    faults += [formula for formula in _FORMULA.findall(text) if squeezed(formula) not in squeezed(seen)]
    text = _FORMULA.sub("—", text)
    faults += [shape for shape in _SHAPE.findall(text) if not is_shape(shape, screen)]
    text = _IDIOM.sub("—", _SHAPE.sub("—", text))
    for share, value in SHARES.items():
        if re.search(rf"\b{share}\b", text, re.IGNORECASE):
            faults += [] if any(abs(each - value) < CLOSE for each in shares(screen)) else [share]
            text = re.sub(rf"\b{share}\b", "—", text, flags=re.IGNORECASE)
    faults += [words for words, claim in claims(text) if not held(claim, screen)]
    if names:
        faults += [name for name in _NAME.findall(text) if name not in KNOWN and plain(name) not in seen]
    return [f"“{fault}” is not on the screen" for fault in faults]


def unread(text: str, marked: Iterable[str], seen: str) -> list[str]:
    """Returns what a scene says that cannot be read where it points: of its text the quotations, and the numbers
    but for counts, in `seen`, all that stands above the fold.
    """
    for phrase in marked:
        text = text.replace(phrase, "—")
    letters = "".join(plain(seen).split())
    faults = [one for one in _QUOTED.findall(text) if "".join(plain(one.strip("_… ")).split()) not in letters]
    there = [claim for _, claim in claims(re.sub(r"(?<=\d)M\b", " million", plain_numbers(seen)))]
    for said, claim in claims(_IDIOM.sub("—", _SHAPE.sub("—", _FORMULA.sub("—", _QUOTED.sub("—", text))))):
        counted = not (claim.digits or claim.percent) and (claim.value < SMALL or not re.search(r"\d", said))
        if not counted and not any(
            each.percent == claim.percent and _equal(each.value * each.unit, claim) for each in there
        ):
            faults.append(said)
    return [f"“{fault}” is not above the fold" for fault in faults]


def is_shape(written: str, screen: Screen) -> bool:
    """True if a tensor of the screen has these last axes, or a text writes them so."""
    sizes = tuple(int(size.replace(",", "")) for size in re.findall(_DIGITS, written))
    known = any(shape[-len(sizes) :] == sizes for shape in screen.shapes)
    return known or squeezed(written) in squeezed(screen.text)


@dataclass(frozen=True)
class Claim:
    """A number with its neighbours. `digits` are those after the point, `percent` and `about` how it is said."""

    value: float
    digits: int
    percent: bool
    about: bool
    words: frozenset[str]
    unit: float = 1.0


def claims(text: str) -> Iterator[tuple[str, Claim]]:
    """Reads the numbers of a text, each with the words around it.

    >>> [(said, claim.value, sorted(claim.words)) for said, claim in claims("Width 128: four small heads.")]
    [('Width 128', 128.0, ['width →']), ('four small heads', 4.0, ['head', 'small'])]
    """
    for match in _NUMBER.finditer(text):
        written = match[1] or match[3].lower()
        if match[3]:
            value, digits = float(NUMBERS[written]), 0
        else:
            written = written.rstrip(",")
            value, digits = float(written.replace(",", "")), len(written.partition(".")[2])
        words, end = [], match.end()
        for word in re.finditer(r"[^\W\d]\w*|[.;:|(]", text[match.end() :]):
            if len(words) == 3 or not word[0][0].isalpha():
                break
            words.append(word[0])
            end = match.end() + word.end()
        before = re.search(r"([^\W\d]\w*) $", text[: match.start()])
        said = text[before.start() if before else match.start() : end]
        near = [stem(word) for word in words if stem(word)]
        near += [f"{stem(before[1])} →"] if before and stem(before[1]) else []
        about = before is not None and before[1].lower() in ("about", "nearly", "almost")
        unit = SCALES.get(words[0].lower(), 1.0) if words else 1.0
        yield said, Claim(value, digits, bool(match[2]), about, frozenset(near), unit)


def held(claim: Claim, screen: Screen) -> bool:
    """True if the screen counts the same thing, or has the number."""
    if claim.value.is_integer() and not claim.percent:
        near = {
            other for word in claim.words for group in SAME if word in group for other in group
        } | claim.words
        if any(int(claim.value) in screen.counts.get(word, ()) for word in near):
            return True
        if claim.value < SMALL and not (claim.digits or claim.about or claim.unit > 1):
            return False
        if int(claim.value) in screen.sizes:
            return True
    for _, seen in claims(plain_numbers(screen.text)):
        if seen.percent == claim.percent and _equal(seen.value * seen.unit, claim):
            return True
    large = claim.value * claim.unit >= LARGE and not claim.percent
    return large and any(_equal(value, claim) for value in screen.values)


def _equal(seen: float, claim: Claim) -> bool:
    """True if the number on the screen is the claimed one, at the precision of the claim: 128 is exact, “about
    49,000” has as many zeros as it is rounded to, and 38.6 million has one digit after its point.
    """
    scaled, digits = seen / claim.unit, claim.digits
    if claim.about and claim.value >= LARGE:
        digits = len(str(int(claim.value)).rstrip("0")) - len(str(int(claim.value)))
    exact = claim.value.is_integer() and not (claim.about or claim.digits or claim.unit > 1)
    return scaled == claim.value if exact else abs(round(scaled, digits) - claim.value) < 1e-9


def shares(screen: Screen) -> list[float]:
    """Returns the percentages of a screen, as shares of 1."""
    return [c.value / 100 for _, c in claims(plain_numbers(screen.text)) if c.percent]


def stem(word: str) -> str:
    """
    >>> stem("Blocks"), stem("entries"), stem("losses"), stem("of"), stem("wide")
    ('block', 'entry', 'loss', '', 'wide')
    """
    word = word.lower()
    if word in FILLERS:
        return ""
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("ss", "ss"), ("s", "")):
        if word.endswith(ending) and len(word) > 2:
            return word[: -len(ending)] + instead
    return word


def plain(text: str) -> str:
    """A text in small letters, spaces and line breaks as spaces, without escapes."""
    return " ".join(re.sub(r"[␣⏎\n·*`]", " ", without_escapes(text)).lower().split())


def plain_numbers(text: str) -> str:
    """A text without the marks that Markdown and TeX put around a number."""
    return re.sub(r"[*`$]", "", without_escapes(text)).replace("{", " ").replace("}", " ")


def squeezed(text: str) -> str:
    r"""
    >>> squeezed(r"$2 \cdot 4\,d^2$"), squeezed("4·d")
    ('24d²', '4d')
    """
    return re.sub(r"\\cdot|\\,|[\s$·*{}\\]", "", text.replace("^2", "²")).lower()
