"""The glossary and the strip: every term and part leads to a view that is there, and is found nowhere else."""

import re

from pages.start.home.map_parts import describe
from studies.costs.presets import PRESETS
from tests.pages.helpers import opened
from tests.pages.rooms import views
from ui import site
from ui.map_strip import BOXES, strip
from ui.text.glossary import linked
from ui.text.glossary import terms as all_terms
from ui.text.markdown import safe

TERMS = list(all_terms().values())


def test_a_term_leads_to_a_view_that_is_there() -> None:
    for term in TERMS:
        key, ids = views(term.page)
        query = dict(term.query)
        assert not query or query[key] in ids, term.id


def test_a_term_is_one_or_two_plain_sentences_and_found_in_others() -> None:
    for term in TERMS:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", term.id), term.id
        assert term.text[-1] == "." and len(term.text.split()) <= 36, f"{term.id}: read in a few seconds"
        assert not re.search(r"[*`$\[\]]", term.text), f"{term.id}: the browser shows it as it is"
        once = linked(term.text)
        assert linked(once) == once, term.id
        for form in term.forms:
            assert linked(f"See the {form}, here.") == f"See the [{form}](#term-{term.id}), here."
            assert f"**[{form}](#term-{term.id})**" in linked(f"**{form}** 3")
    forms = [form.lower() for term in TERMS for form in term.forms]
    assert len(forms) == len(set(forms)) and len(TERMS) >= 60


def test_words_of_the_literature_find_their_entry() -> None:
    def found(word: str) -> list[str]:
        return [term.id for term in TERMS if word in ", ".join((*term.forms, *term.synonyms)).lower()]

    wanted = {
        "nucleus": "top-p",
        "tying": "tied",
        "bert": "encoder",
        "cross-attention": "cross-attention",
        "warmup": "warm-up",
        "validation": "held-out",
        "seed": "seed",
        "square root": "scaled-dot-product",
        "bigram": "bigram",
        "branching factor": "perplexity",
        "margin": "dpo",
        "log-ratio": "dpo",
        "least squares": "least-squares",
        "finite difference": "finite-difference",
        "linear attention": "linear-attention",
    }
    assert {word: found(word) for word in wanted} == {word: [term] for word, term in wanted.items()}


def test_the_first_of_each_is_linked_and_capitals_are_kept() -> None:
    said = linked("Softmax of a logit; the softmax of logits. *Entropy*")
    assert said == (
        "[Softmax](#term-softmax) of a [logit](#term-logit); the softmax of logits."
        " *[Entropy](#term-entropy)*"
    )


PLAIN = (
    "`softmax` and ``a ` softmax`` and\n```python\nsoftmax(logits)\n```",
    "$softmax(x)$ and $$\nsoftmax(logits)\n$$",
    "[a softmax](https://example.org/softmax) and [logits]",
    "![softmax](logits.png) and :red[softmax] and :blue-badge[logits]",
    "## The softmax",
    "https://example.org/softmax/logits and <span title='softmax'>",
    'it says “softmax” and then "logits"',
    "pre-softmax, softmax_v2, blocks.head, head-to-head, a/head, head.py and key:value",
    "\\softmax",
)


def test_what_is_no_running_text_stays() -> None:
    for text in PLAIN:
        assert linked(text) == text
    assert "[softmax]" in linked(r"It costs \$5: a softmax, \$6 more")
    assert "[softmax]" in linked("A ` alone and a softmax")
    for written in ("a*b_c", "[head](#x) $x$ `y`", "1 < 2 & “x”", "~~head~~"):  # what a person wrote
        expected = f"After “{safe(written)}” the [softmax](#term-softmax)"
        assert linked(f"After “{safe(written)}” the softmax") == expected


def test_every_sentence_around_a_figure_is_linked() -> None:
    def script() -> None:
        from ui import explain

        explain.answer("The loss is **2.1 nats**.")
        explain.takeaway("One token.")
        explain.worked("Logits", "3", "a softmax")

    page = opened(script)
    assert [text.value for text in page.markdown] == [
        "The [loss](#term-loss) is **2.1 [nats](#term-nats)**.",
        "One [token](#term-token).",
    ]
    assert page.caption[0].value == "a [softmax](#term-softmax)"


PARTS = set(describe(PRESETS["classic"].model.validate().resolved()))
DRAWN = [entry for entry in site.ENTRIES if entry.shown]


def test_the_parts_of_a_page_are_lit() -> None:
    assert {entry.url for entry in site.ENTRIES} - {entry.url for entry in DRAWN} == {"", "courses"}
    for entry in DRAWN:
        html = strip(entry)
        states = re.findall(r'<span class="(lit|dim)"', html)
        assert states == ["lit" if part in entry.shown else "dim" for part in BOXES], entry.url
        (place,) = re.findall(r'<a [^>]*data-part="(\w+)"', html)
        assert place in entry.shown and place in PARTS and f'href="./?part={place}"' in html
        assert 'aria-label="You are here on the map: ' in html
        assert ("road-lit" in html) == any(part.startswith("sum_") for part in entry.shown), entry.url
