"""The frame of a page: one line with its title and views, one with the question of the view and what is
looked into, the view, and, folded, what is said about it.

    PAGE = Page("Attention", "attention_view", (heads.VIEW, steps.VIEW, ...))
    if __name__ == "__main__":  # Streamlit runs a page as a script; lists of all views import it
        show(PAGE)
"""

from __future__ import annotations

import hashlib
import logging
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import urlencode

import streamlit as st

from engine.errors import CheckpointError, HeadError, PretrainedError, TokenizerError
from ui import (
    content,
    explain,
    export,
    families,
    frames,
    model_choice,
    models,
    session,
    site,
    visited,
    widgets,
)
from ui.fit_text import FIRST_TEXT, FIRST_WORDS
from ui.map_strip import draw_here
from ui.model_bar import (
    Choice,
    Subject,
    choose_subject,
    subject_of,
)
from ui.model_needs import SAYS, Need, lacking
from ui.models import FIRST_MODEL
from ui.text.markdown import safe, sentence
from ui.training_step import NEWEST

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

T = TypeVar("T")
log = logging.getLogger(__name__)
Code = tuple[Callable[..., Any] | type, ...]
Query = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Words:
    """The three things that a view says about its figure: what you see, why it matters, what to try
    (Markdown). `texts` says where a textbook, lecture or lab states otherwise, and why the view is right.
    """

    see: str
    why: str
    attempt: str
    texts: str = ""

    @classmethod
    def of(cls, text: content.Texts, variant: str = "", **fields: Any) -> Words:
        """Returns the words of a view's text: those of a variant (`## try small`) where it has some."""
        names = ((f"{name} {variant}", name) for name in content.WORDS)
        there = (next((name for name in pair if name in text), None) for pair in names)
        return cls(*(text(name, **fields) if name else "" for name in there))


@dataclass(frozen=True)
class Ask:
    """A question of a view in lists, with its words; `query` is what the address says for it."""

    question: str
    words: Words | None = None
    query: Query = ()


@dataclass(frozen=True)
class Parts:
    """The parts of a view: `key` holds in the address which of the `views` is shown. One whose text has no
    question or no words has those of the view. Where the buttons that choose one have a `label`, what a part
    draws gets first the container of their line, for controls of its own; `line` gives the widths of both.
    """

    key: str
    views: tuple[View, ...]
    label: str = ""
    hint: str | None = None
    line: Sequence[float] = ()

    @property
    def shown(self) -> View:
        """Returns the part that is shown, before its buttons are drawn as well as after."""
        return self._named(widgets.settled(self._titles, self.key))

    @property
    def _titles(self) -> dict[str, str]:
        return {view.id: view.title for view in self.views}

    def _named(self, name: str) -> View:
        return next(view for view in self.views if view.id == name)

    def draw(self, *about: Any) -> None:
        """Draws the buttons, and the part that they choose."""
        if not self.label:
            chosen = widgets.select("What is drawn", self._titles, self.key, hidden=True, wrap=True)
            self._named(chosen).show(*about)
            return
        style: Any = {"gap": "small", "vertical_alignment": "bottom"}
        buttons, beside = (
            st.columns(self.line, **style) if self.line else [st.container(horizontal=True, **style)] * 2
        )
        chosen = widgets.select(self.label, self._titles, self.key, container=buttons, hint=self.hint)
        self._named(chosen).show(beside, *about)


@dataclass(frozen=True, eq=False)
class View:
    """A view of a page: one question and its answer.

    Its functions get the `Subject` of the bar where it `needs_model`, what `choose` returns where that draws
    a bar of the view's own, else nothing. A view that `takes` certain models says of another what
    it lacks, with one click to a model that fits. It opens with the first of the `best` that is here where
    the visitor looks into none of them, and one click leads back to the visitor's own. An encoder-decoder is
    looked into at the half that reads.

    A view has several questions by its `parts`, which draw in its place, or by `variants`: where what is
    shown has another `variant`, the text's sections `question variant` and `see variant` stand for its own.
    """

    id: str  # in the address
    text: content.Texts  # all that it says
    draw: Callable[..., object] | None = None  # None where it has parts
    code: Code | Callable[..., Code] = ()  # of the engine, whose source is offered below it
    needs_model: bool = True
    choose: Callable[[], object] | None = None
    brings_text: bool = False  # for the model to read: the bar has no box
    takes: tuple[Need, ...] = ()  # what a model has to meet (ui.model_needs)
    best: tuple[str, ...] = ()  # models that show its point, where most do not
    both_halves: bool = False  # of an encoder-decoder, one chosen in the view
    whole: bool = False  # it takes an encoder-decoder as a whole
    figures_only: bool = False  # from step to step of a training nothing differs but figures and the answer
    parts: Parts | None = None
    name: str = ""  # on its button, if not the text's title
    variant: str | Callable[..., str] = ""
    variants: Mapping[str, Query] = field(default_factory=dict)  # with a question -> what the address says
    question: Callable[..., str] | None = None  # one that names what is shown; lists have the text's
    words: Callable[..., Words] | None = None  # that stand elsewhere
    fields: Mapping[str, Any] = field(default_factory=dict)  # of the text's words
    shows: tuple[str, ...] = ()  # for search: terms for the figure that stand in no question

    def __post_init__(self) -> None:
        if (self.draw is None) == (self.parts is None):
            raise TypeError(f"the view {self.id!r} needs either what draws it or parts")

    @property
    def title(self) -> str:
        """Returns what stands on the view's button."""
        return self.name or self.text.title

    @property
    def asks_late(self) -> bool:
        """True if the question depends on what is shown."""
        return bool(self.parts or self.question or self.variants)

    @property
    def asks(self) -> tuple[Ask, ...]:
        """Returns all questions, the first where it opens."""
        if self.parts is not None:
            return tuple(
                Ask(
                    ask.question if view.text.question else self.text.question,
                    ask.words or self._words_of(""),
                    ((self.parts.key, view.id), *ask.query),
                )
                for view in self.parts.views
                for ask in view.asks
            )
        asked = {self._first_variant: (), **self.variants}
        unsaid = callable(self.variant) and not self.variants  # the words depend on what is shown
        return tuple(
            Ask(self._asked(name), None if unsaid else self._words_of(name), query)
            for name, query in asked.items()
        )

    @property
    def first_question(self) -> str:
        """Returns the question with which it opens."""
        if self.parts is not None and (part := self.parts.views[0]).text.question:
            return part.first_question
        return self._asked(self._first_variant)

    @property
    def _first_variant(self) -> str:
        return "" if callable(self.variant) else self.variant

    def question_for(self, *about: Any) -> str:
        """Returns the question, of what `draw` gets."""
        if self.parts is not None and (part := self.parts.shown).text.question:
            return part.question_for(*about)
        if self.question is not None:
            return self.question(*about)
        return self._asked(self._variant(*about) if self.variants else self._first_variant)

    def _variant(self, *about: Any) -> str:
        return self.variant(*about) if callable(self.variant) else self.variant

    def _asked(self, variant: str) -> str:
        if (section := f"question {variant}") in self.text:
            return self.text[section]
        return self.text.question or self.title

    def words_for(self, *about: Any) -> Words | None:
        """Returns the words, of what `draw` gets."""
        if self.parts is not None and (words := self.parts.shown.words_for(*about)) is not None:
            return words
        if self.words is not None:
            return self.words(*about)
        return self._words_of(self._variant(*about))

    def _words_of(self, variant: str) -> Words | None:
        there = any(name in self.text for name in (content.WORDS[0], f"{content.WORDS[0]} {variant}"))
        return Words.of(self.text, variant, **self.fields) if there else None

    def code_for(self, *about: Any) -> Code:
        """Returns the functions and classes whose source is offered, of what `draw` gets."""
        code = self.parts.shown.code if self.parts is not None else self.code
        return code(*about) if callable(code) else code

    def show(self, *about: Any) -> None:
        """Draws the view."""
        draw = self.parts.draw if self.parts is not None else self.draw
        assert draw is not None
        draw(*about)

    def tell(self, *about: Any) -> None:
        """Draws the words and the code, folded: below the view, after the scrubber."""
        words = self.words_for(*about)
        said = dict(zip(explain.TITLES, astuple(words), strict=True)) if words else {}
        export.note(said, _facts(self, *about))
        if words is not None:
            explain.reading(words.see, words.why, words.attempt, words.texts)
        if code := self.code_for(*about):
            explain.show_code(*code)

    def ask(self, container: DeltaGenerator, *about: Any) -> None:
        """Writes the question into its place."""
        container.header(self.question_for(*about), anchor=False)


@dataclass(frozen=True)
class Page:
    """A page and its views. `key` names the view in the URL; `model` is looked into and `text` read, or
    `words` by a model that was trained on much of them, until there are others. `bar` is drawn above the
    views of a page that looks into no model: what it returns, they get. `beside` is drawn beside their names.
    """

    title: str
    key: str
    views: tuple[View, ...]
    text: str = FIRST_TEXT
    model: str = FIRST_MODEL
    words: str = FIRST_WORDS
    bar: Callable[[], object] | None = None
    beside: Callable[[], object] | None = None


@dataclass(frozen=True)
class Listed:
    """A view with its page."""

    entry: site.Entry
    page: Page
    view: View

    @property
    def id(self) -> str:
        """Returns the page's address and the view's id, such as attention/heads."""
        return f"{self.entry.url}/{self.view.id}"

    @property
    def title(self) -> str:
        """Returns the titles of page and view; of a page with a single view its own."""
        if len(self.page.views) == 1:
            return self.entry.title
        return f"{self.entry.title} > {self.view.title}"

    @property
    def asks(self) -> tuple[Ask, ...]:
        """Returns the view's questions."""
        return self.view.asks

    @property
    def question(self) -> str:
        """Returns the question with which the view opens."""
        return self.view.first_question

    def address(self, ask: Ask | None = None) -> str:
        """Returns the address below the app's root, such as attention?attention_view=heads."""
        query = {self.page.key: self.view.id} if self.page.key else {}
        query |= dict(ask.query) if ask is not None else {}
        return self.entry.url + (f"?{urlencode(query)}" if query else "")


def header(title: str, draw: Callable[[], T]) -> T:
    """Draws the first line of a page: its title, beside it what `draw` draws, and where on the map it is."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="page_line"):
        st.title(title, anchor=False, width="content")
        drawn = draw()
        if entry := site.entry_of(widgets.page_drawn()):
            draw_here(entry)
        return drawn


@contextmanager
def question_line() -> Iterator[DeltaGenerator]:
    """Opens the second line of a page; gives the place of its question, before what else stands there."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="question_line"):
        yield st.empty()


def show(page: Page, draw: Callable[[], object] | None = None) -> None:
    """Draws the page, in the frame of all pages or as `draw` does."""
    if draw is None:
        _draw_page(page)
        return
    if len(page.views) == 1:
        note_visit(page, page.views[0])
    draw()


def note_visit(page: Page, view: View) -> None:
    """Folds what another view had open, and remembers this one among the last views visited."""
    explain.new_view(f"{page.key}/{view.id}")
    if entry := site.entry_of(widgets.page_drawn()):
        listed = Listed(entry, page, view)
        visited.note(listed.address(), listed.title, listed.question, page.views[0].id)


def _draw_page(page: Page) -> None:
    """Draws the page: the scrubber and the controls of a view draw the view again, and no more."""
    session.drop_endless()
    linked = st.query_params.get(page.key)
    view = header(page.title, lambda: _names(page))
    # By a click: the address is that of the view before.
    walked = linked != view.id and st.query_params.get(page.key) != linked
    note_visit(page, view)
    with boundary():
        if view.choose is not None:
            _draw_chosen(view, view.choose)
        else:
            _chosen(page, view, *_question_line(page, view, walked))


def _draw_chosen(view: View, choose: Callable[[], object]) -> None:
    """Draws a view with a bar of its own, as a whole."""
    with question_line() as question:
        if not view.asks_late:
            view.ask(question)
        about = choose()
    _draw(view, question, about)
    view.tell(about)


def _question_line(page: Page, view: View, walked: bool) -> tuple[DeltaGenerator, Choice | None]:
    """(the place of the question, what is looked into); the bar stands only where it acts."""
    with question_line() as question:
        if not view.asks_late:
            view.ask(question)
        if not view.needs_model:
            return question, None
        return question, choose_subject(
            page.text,
            page.model,
            not view.brings_text,
            page.words,
            best=view.best,
            view=view.id,
            walked=walked,
        )


def choose_view(views: Sequence[View], key: str) -> View:
    """Draws the views as a row of buttons. A link names a view by its id."""
    by_id = {view.id: view for view in views}
    titles = {view.id: view.title for view in views}
    return by_id[widgets.select("View", titles, key, hidden=True, wrap=True)]


@st.fragment
def _chosen(page: Page, view: View, question: DeltaGenerator, choice: Choice | None) -> None:
    if choice is None:
        with boundary():
            if page.bar is None:
                _below(view, question)
            else:  # in a fragment of its own: what a view asks for leaves the widgets of the bar alone
                st.fragment(_below)(view, question, page.bar())
        return
    with boundary():
        again = (
            partial(_opened, page, view, question) if view.figures_only and not explain.unfolded() else None
        )
        with subject_of(choice, again) as subject:
            _offer_own(view, choice.name)
            drawn = _opened(page, view, question, subject)
        # After the scrubber, which may ask for the next step as soon as the pictures have been sent.
        if drawn:
            view.tell(subject)


def _below(view: View, question: DeltaGenerator, *about: Any) -> None:
    """Draws a view, and what is said about it."""
    _draw(view, question, *about)
    with boundary():
        view.tell(*about)


def _offer_own(view: View, name: str) -> None:
    """Offers the visitor's own model where the view opened with one that shows its point."""
    if (own := model_choice.visitors_choice(name, view.best)) is not None:
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="own_model"):
            st.caption(f":material/info: {safe(models.title_of(name))} shows this best.", width="content")
            _model_button(f"Show {safe(models.title_of(own))}", own)


def _model_button(label: str, name: str, kind: Literal["secondary", "tertiary"] = "tertiary") -> None:
    # Streamlit's own: it chooses in the bar, which holds the value.
    st.button(label, key=f"look_into_{name}", type=kind, on_click=model_choice.choose, args=(name,))


def _opened(page: Page, view: View, question: DeltaGenerator, subject: Subject) -> bool:
    """Draws the view of a subject, of an encoder-decoder its half that reads; else says what the view takes,
    and offers a model that has it.
    """
    if (need := lacking(view.takes, subject)) is not None:
        _refuse(page, view, question, subject, need)
        return False
    if subject.pair is None or view.whole:
        _draw(view, question, subject)
        return True
    with boundary():
        with st.container(key="family_line"):
            st.caption(families.seen_half(subject.key[0], view.both_halves))
        try:
            _within(view, question, subject)
        except HeadError:
            _refuse(page, view, question, subject, SAYS)
            return False
    return True


def _refuse(page: Page, view: View, question: DeltaGenerator, subject: Subject, need: Need) -> None:
    question.header(view.title if view.asks_late else view.question_for(), anchor=False)
    why = need.lacks if subject.pair is None else families.why_closed(need.lacks, subject.key[0])
    st.info(why, icon=":material/info:")
    other = model_choice.first_of((*view.best, page.model))
    _model_button(f"Open with {safe(models.title_of(other))}", other, "secondary")


def _draw(view: View, question: DeltaGenerator, *about: Any) -> None:
    with boundary():
        _within(view, question, *about)


def _within(view: View, question: DeltaGenerator, *about: Any) -> None:
    if view.asks_late:
        view.ask(question, *about)
    view.show(*about)


def _facts(view: View, *about: Any) -> dict[str, str]:
    """Returns what a saved view says of the model that it looks into."""
    if not about or not isinstance(about[0], Subject):
        return {}
    subject = about[0]
    name, step = subject.key
    seed = (models.trained_as(name) or {}).get("seed")
    return {
        "Model": subject.title,
        "Step": "" if step == NEWEST else f"{step:,}",
        "Seed": "" if seed is None else f"{seed} (of its training)",
        "Text": "" if view.brings_text else subject.text,
    }


def _names(page: Page) -> View:
    """Draws the names of the views, where there are several, and what stands beside them."""
    view = choose_view(page.views, page.key) if len(page.views) > 1 else page.views[0]
    if page.beside is not None:
        page.beside()
    return view


@contextmanager
def boundary() -> Iterator[None]:
    """Turns an exception inside it into a sentence with a number; the rest of the page lives, and the log has
    the trace. A stored result that cannot be read, and a text or file that is refused, says so itself.
    """
    try:
        yield
    except HeadError as error:  # an encoder that others trained, say: no fault of anybody
        said = str(error)
        st.info(f"{said[0].upper()}{said[1:]}. Other views may still work.", icon=":material/info:")
    except CheckpointError as error:  # what comes with the app is missing, or not whole
        log.warning("a stored result cannot be read: %s", error)
        st.info(safe(str(error)), icon=":material/info:")
    except Exception as error:  # Streamlit's own signals to stop or run again are no Exceptions
        failed(error)


def failed(error: Exception) -> None:
    """Tells the person that a part of the page could not be drawn, and the log why, under the same number; of
    a text or a file of others what is wrong with it. Past Streamlit the page says it.
    """
    if isinstance(error, TokenizerError | PretrainedError):
        log.warning("a part of a page was refused: %s", error)
        st.info(sentence(error), icon=":material/info:")
        return
    number = number_of(error)
    log.error("%s: a part of a page could not be drawn", number, exc_info=error)
    frames.page_needed()
    st.error(
        "This could not be drawn: the fault is ours, not yours. Another view, model or setting may still"
        f" work. The server's log has the reason under **{number}**.",
        icon=":material/error:",
    )


def number_of(error: Exception) -> str:
    """Returns eight digits that name a fault by its type and the lines that led to it: however many meet it,
    it has one number, and the log has it though it tells few of a kind (ui.operate.log).
    """
    lines = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    return hashlib.sha256(repr((type(error).__qualname__, lines)).encode()).hexdigest()[:8]
