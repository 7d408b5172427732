"""Texts beside a module: sections, fields, plurals, what is escaped, files that change, and translations."""

import os
from pathlib import Path

import pytest

from tests.pages.helpers import text_of
from ui import content, page_frame
from ui.page_frame import Parts, View, Words

ENGLISH = """# Attention sinks
Where does weight go
that goes nowhere?

## see
Two lines
become one.

- a list
- keeps its lines,
  wrapped or not

## try
Anything.

## try small
A small model.

## copies
**{loss:.1f}** nats at {heads} {heads:head|heads} of {name}, {share:percent} of {size:bytes}.

## alt map
{name} as it is

## labels
own: custom, {name}
head: Head
"""


@pytest.fixture
def texts(tmp_path: Path) -> content.Texts:
    (tmp_path / "sinks.md").write_text(ENGLISH, "utf-8")
    return content.beside(str(tmp_path / "sinks.py"))


def test_a_file_is_title_question_and_sections(texts: content.Texts) -> None:
    assert (texts.title, texts.question) == ("Attention sinks", "Where does weight go that goes nowhere?")
    assert texts["see"] == "Two lines become one.\n\n- a list\n- keeps its lines, wrapped or not"
    assert set(texts) == {"see", "try", "try small", "copies", "alt map", "own", "head"}


def test_fields_have_a_format_a_plural_and_a_true_minus(texts: content.Texts) -> None:
    said = texts("copies", loss=-1.26, heads=1, name="x", share=1 / 9000, size=1536)
    assert said == "**−1.3** nats at 1 head of x, <0.1% of 1.5 KB."
    assert "2 heads" in texts("copies", loss=0.0, heads=2, name="x", share=0.5, size=1)


def test_a_name_that_stands_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="two sections 'head'"):
        content.Sheet.read(f"{ENGLISH}\n## head\nAgain.\n")


def test_what_a_stranger_wrote_is_escaped_but_not_where_there_is_no_markdown(texts: content.Texts) -> None:
    fields = {"loss": 1.0, "heads": 2, "share": 0.5, "size": 1}
    assert r"of \*a\*," in texts("copies", name="*a*", **fields)
    assert "of *a*," in texts("copies", name=content.Filled("*a*"), **fields)
    assert texts("alt map", name="*a*") == "*a* as it is"
    assert texts("own", name="*a*") == "custom, *a*"
    inner = texts("copies", name="*", **fields)
    assert inner in texts("copies", name=inner, **fields), "what is filled in already is not escaped again"


def test_a_section_or_field_that_is_not_there_is_an_error(texts: content.Texts) -> None:
    with pytest.raises(KeyError):
        texts("no such section")
    with pytest.raises(KeyError):
        texts("own")


def test_a_text_that_is_edited_shows_at_the_next_run(texts: content.Texts, tmp_path: Path) -> None:
    assert texts["head"] == "Head"
    file = tmp_path / "sinks.md"
    file.write_text(ENGLISH.replace("head: Head", "head: Attention head"), "utf-8")
    os.utime(file, ns=(1, 1))
    assert texts["head"] == "Attention head"


def test_a_view_takes_its_title_question_and_words_from_its_text(texts: content.Texts) -> None:
    view = View("sinks", texts, print)
    assert (view.title, view.question_for()) == ("Attention sinks", "Where does weight go that goes nowhere?")
    assert view.words_for() == Words(texts["see"], "", "Anything.")
    assert Words.of(texts, "small").attempt == "A small model."


def test_a_variant_of_what_is_shown_has_a_question_and_words_of_its_own() -> None:
    text = text_of("Heads", "Who looks at whom?", **{
        "question counts": "How much?", "see": "A map.", "see counts": "{many} numbers.", "see small": "Little.",
    })  # fmt: skip
    view = View(
        "heads", text, print, variant=str, variants={"counts": (("number", "all"),)}, fields={"many": 3}
    )
    assert view.asks_late and view.first_question == view.question_for("") == "Who looks at whom?"
    assert (view.question_for("counts"), view.question_for("small")) == ("How much?", "Who looks at whom?")
    assert [view.words_for(shown).see for shown in ("", "counts", "small")] == [
        "A map.",
        "3 numbers.",
        "Little.",
    ]
    assert [(ask.question, ask.words.see, ask.query) for ask in view.asks] == [
        ("Who looks at whom?", "A map.", ()),
        ("How much?", "3 numbers.", (("number", "all"),)),
    ]


def test_a_variant_without_a_question_is_asked_about_before_anything_is_known() -> None:
    text = text_of("Sinks", "Where does weight go?", **{"see": "A map.", "see small": "Little."})
    view = View("sinks", text, print, variant=lambda subject: "small")
    assert not view.asks_late and view.question_for() == "Where does weight go?"
    assert view.words_for(None).see == "Little." and [ask.words for ask in view.asks] == [None]


def test_a_part_without_a_question_has_the_one_of_its_view(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (
        View("sums", text_of("Sums", "What is added?", see="A sum."), print),
        View("turns", text_of("Turns"), print),
    )
    whole = text_of("RoPE", "How is distance encoded?", see="Arrows.")
    view = View("rope", whole, parts=Parts("topic", (second, first)))
    assert view.first_question == "How is distance encoded?"
    assert [(ask.question, ask.words.see, ask.query) for ask in view.asks] == [
        ("How is distance encoded?", "Arrows.", (("topic", "turns"),)),
        ("What is added?", "A sum.", (("topic", "sums"),)),
    ]
    for part, asked, seen in (
        (second, "How is distance encoded?", "Arrows."),
        (first, "What is added?", "A sum."),
    ):
        monkeypatch.setattr(page_frame.widgets, "settled", lambda titles, key, part=part: part.id)
        assert (view.question_for(), view.words_for().see) == (asked, seen)


def test_english_stands_in_for_what_is_not_translated_and_what_has_changed_is_known(
    texts: content.Texts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    english = content.Sheet.read(ENGLISH)
    german = f"# Aufmerksamkeit\n\n## see {english.digest('see')}\nZwei Zeilen.\n\n## gone 00000000\nWeg.\n"
    (tmp_path / "sinks.de.md").write_text(german, "utf-8")
    monkeypatch.setattr(content, "language_shown", lambda: "de")
    assert (texts.title, texts["see"], texts["head"]) == ("Aufmerksamkeit", "Zwei Zeilen.", "Head")
    assert texts.question == "Where does weight go that goes nowhere?"
    translated = content.Sheet.read(german)
    assert translated.stale(english) == ["gone"]
    assert translated.stale(content.Sheet.read(ENGLISH.replace("Two", "Three"))) == ["see", "gone"]
