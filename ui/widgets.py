"""Controls whose value is never foreign: whatever a link, a widget or another model left behind, what comes
back is allowed.

Each keeps its value in the URL under its `key`, and for the session: by Streamlit's binding (KEPT); by
`settle` before it is drawn and `note` after that, where the URL holds names, or what Streamlit cannot bind.
The step of a player, and all else that no control holds, is read with `url_index` or `read_url`, and written
with `keep_in_url`. Values that equal the first are left out of the URL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal, TypeVar

import streamlit as st
from streamlit.errors import StreamlitAPIException
from streamlit.runtime.scriptrunner import get_script_run_ctx

from engine.config import ModelConfig
from ui.fields import visible
from ui.text import markdown
from ui.text.numbers import counted

T = TypeVar("T", bound=Hashable)
V = TypeVar("V")
N = TypeVar("N", int, float)
Kind = Literal["row", "pills", "list"]
KEPT: dict[str, Any] = {"bind": "query-params", "persist_state": "session"}
FEW = 8  # indexes that stand in a row; more of them are a list
_PAGE, _ARRIVED = "page_drawn", "page_arrived_at"
_LEFT = "left_in_url"  # page -> what `keep_in_url` has put into its address
# Behind a key: what the address held once it was drawn; another value came from a link, or from going back
IN_URL = "__in_url"
_FIRST = "__first"  # behind a key: the value that the address need not name
_SUBJECT = "__subject"  # behind a key: of what the value is that `keep_in_url` keeps
MUCH_LONGER = "a much longer text is not applied."  # by `box`: what it says beside its limit
MOST_PROMPT, MOST_ANSWER = 300, 40  # characters
DIGITS = 12  # of a number in a link: longer ones are no index of anything


# A control and the address ----------------------------------------------------------------------


def settle(key: str, read: Callable[[list[str]], V | None], first: V) -> V:
    """Settles the value of a control before it is drawn, in the session under `key`, and returns it: what a
    link names, or going back, else what was chosen or set; `first` until there is another, and where somebody
    went back to an address without one.

    `read` returns the value that the texts in the address name; None where they name none: a stranger wrote
    them. Once the control is drawn, `note` says what it shows.
    """
    texts = st.query_params.get_all(key)
    if key not in st.session_state or texts != st.session_state.get(key + IN_URL, []):
        named = read(texts) if texts else None
        if named is not None:
            st.session_state[key] = named
        elif key not in st.session_state or went_back() or not st.session_state.get(_ARRIVED, True):
            st.session_state[key] = first
    value: V = st.session_state[key]
    return value


def note(key: str, texts: list[str]) -> None:
    """Writes what a control shows into the address; no texts take it out."""
    if not texts:
        st.query_params.pop(key, None)
    elif sorted(texts) != sorted(st.query_params.get_all(key)):
        st.query_params[key] = texts
    st.session_state[key + IN_URL] = st.query_params.get_all(key)


def _bound(draw: Callable[..., V], *given: Any, first: Hashable, key: str, **rest: Any) -> V:
    """Draws a control that Streamlit binds to the address, which names its value where that is not the first.

    Streamlit compares them where a hand moves the control. Where another one has changed which is the first,
    the value is set once more: then they are compared again, and a link says what is seen. A value that a
    link has just brought stays the link's.
    """
    known = st.query_params.get_all(key) == st.session_state.get(key + IN_URL, [])
    if known and key in st.session_state and first != st.session_state.get(key + _FIRST, first):
        st.session_state[key] = st.session_state[key]
    value = draw(*given, key=key, **KEPT, **rest)
    st.session_state[key + IN_URL], st.session_state[key + _FIRST] = st.query_params.get_all(key), first
    return value


# Choosing one of a few -------------------------------------------------------------------------


def select(
    label: str,
    options: Sequence[T] | Mapping[T, str],
    key: str,
    *,
    first: T | None = None,
    kind: Kind = "row",
    container: Any = st,
    hint: str | None = None,
    hidden: bool = False,
    always: bool = False,
    **rest: Any,
) -> T:
    """Draws a choice of one of `options`; `first` (or the first of them) until another is chosen.

    For a sequence the URL holds the button's text, for a mapping (id -> what is written) the id, and where it
    `always`, the first one's, too: where the first hangs on what is shown. `kind`: a row of buttons, pills,
    or a list that opens. `hidden` hides the label. `rest` goes to Streamlit's widget.
    """
    first = first if first is not None and first in options else next(iter(options))
    if st.session_state.get(key) not in (None, *options):
        del st.session_state[key]  # of another model, or of another page's links
    draw: Callable[..., Any] = {
        "row": container.segmented_control,
        "pills": container.pills,
        "list": container.selectbox,
    }[kind]
    rest = {"key": key, "help": hint, "label_visibility": "collapsed" if hidden else "visible"} | rest
    if kind != "list":
        rest = {"required": True} | rest
    if isinstance(options, Mapping):
        return _named(label, options, key, first, draw, rest, always)
    default = {"index": list(options).index(first)} if kind == "list" else {"default": first}
    choice: T = _bound(draw, label, list(options), first=first, **default, **rest)
    return choice if choice in options else first


def _named(
    label: str,
    options: Mapping[T, str],
    key: str,
    first: T,
    draw: Callable[..., Any],
    rest: Mapping[str, Any],
    always: bool,
) -> T:
    """Streamlit binds what is written on a button; here the URL holds its name, so that words can change."""
    settled(options, key, first)
    words = {"format_func": lambda option: options.get(option, str(option))}
    result: T = draw(label, list(options), persist_state="session", **words, **rest)
    result = result if result in options else first
    note(key, [] if result == first and not always else [str(result)])
    return result


def settled(options: Collection[T], key: str, first: T | None = None) -> T:
    """Returns which of `options` a `select` will show, before it is drawn: what a link names, or going back,
    else what was chosen; `first` (or the first of them) until another is.
    """
    first = next(iter(options)) if first is None else first
    chosen = settle(key, lambda texts: next((o for o in options if [str(o)] == texts[-1:]), None), first)
    return chosen if chosen in options else first  # a forged message may hold anything


def select_several(
    label: str,
    options: Sequence[T] | Mapping[T, str],
    key: str,
    *,
    first: Iterable[T] = (),
    kind: Literal["pills", "list"] = "pills",
    container: Any = st,
    hint: str | None = None,
    **rest: Any,
) -> list[T]:
    """Draws a choice of several of `options`, in their order; `first` until others are chosen. None of them
    is a choice, too.

    The URL holds what is written on the buttons, each under `key`: of a mapping (id -> what is written) the
    words. `kind`: pills, or a list that opens. `rest` goes to Streamlit's widget.
    """
    words = options if isinstance(options, Mapping) else {option: str(option) for option in options}
    at_first = only(options, first)

    def read(texts: list[str]) -> list[T] | None:
        named = [option for option in options if words[option] in texts]
        return named if named or texts == [""] else None

    held = settle(key, read, at_first)
    st.session_state[key] = only(options, held)  # it may be of another model, or of another page's links
    # Streamlit's binding loses a choice of none that a program has made.
    rest = {"key": key, "help": hint, "persist_state": "session"} | rest
    rest = {"format_func": lambda option: words.get(option, str(option))} | rest
    draw = partial(container.pills, selection_mode="multi") if kind == "pills" else container.multiselect
    chosen = only(options, draw(label, list(options), **rest))
    note(key, [] if chosen == at_first else [words[option] for option in chosen] or [""])
    return chosen


def arrived(page: str) -> None:
    """Notes which page is drawn, once in each whole run of the script. Coming from another page, whose
    address says nothing of this one's choices, they are remembered: what one left is what one finds, but for
    what a link names. On the same page an address without them is one to which somebody went back.
    """
    st.session_state[_ARRIVED] = st.session_state.get(_PAGE) != page
    st.session_state[_PAGE] = page
    if just_arrived() and not went_back():
        for name, value in st.session_state.get(_LEFT, {}).get(page, {}).items():
            if name not in st.query_params:
                st.query_params[name] = value


def just_arrived() -> bool:
    """True in the first run of a page after another one; a part of it that runs again later is no arrival."""
    # Streamlit's own (1.67)
    part = getattr(get_script_run_ctx(suppress_warning=True), "fragment_ids_this_run", None)
    return bool(st.session_state.get(_ARRIVED, False)) and not part


def went_back() -> bool:
    """True in the run of a page to which the browser's Back or Forward, or a step of a course, has led: its
    address says all that it shows.
    """
    # Streamlit's own (1.67); where it is called otherwise, a page that was left keeps what was chosen there.
    return bool(getattr(get_script_run_ctx(suppress_warning=True), "is_history_navigation", False))


def page_drawn() -> str:
    """Returns the address of the page that is drawn; nothing for Home, and where no router has said."""
    return str(st.session_state.get(_PAGE, ""))


def switch(
    label: str, first: bool, key: str, *, container: Any = st, hint: str | None = None, **rest: Any
) -> bool:
    """Draws a toggle; returns its value."""
    return bool(_bound(container.toggle, label, first, first=first, key=key, help=hint, **rest))


# Numbers ----------------------------------------------------------------------------------------


def whole(
    label: str,
    low: int,
    high: int,
    first: int,
    key: str,
    *,
    step: int = 1,
    container: Any = st,
    hint: str | None = None,
    **rest: Any,
) -> int:
    """Draws a box for a whole number from `low` to `high`."""
    _inside(key, low, high)
    first = clamped(first, low, high, low)
    draw = container.number_input
    value = _bound(draw, label, low, high, first, step, first=first, key=key, help=hint, **rest)
    return clamped(value, low, high, first)


def slide(
    label: str,
    low: N,
    high: N,
    first: N,
    key: str,
    *,
    step: N | None = None,
    container: Any = st,
    hint: str | None = None,
    **rest: Any,
) -> N:
    """Draws a slider from `low` to `high`; where they are one there is nothing to move, and no slider."""
    if low >= high:
        return low
    _inside(key, low, high)
    first = clamped(first, low, high, low)
    draw = container.slider
    value = _bound(draw, label, low, high, first, step, first=first, key=key, help=hint, **rest)
    return clamped(value, low, high, first)


def slide_over(
    label: str,
    options: Sequence[T],
    first: T,
    key: str,
    *,
    container: Any = st,
    hint: str | None = None,
    written: Callable[[Any], str] = str,
    **rest: Any,
) -> T:
    """Draws a slider over a few values that have an order; `written` is how they are shown and stand in the
    URL.
    """
    first = first if first in options else options[0]
    if st.session_state.get(key) not in (None, *options):
        del st.session_state[key]
    rest = {"key": key, "help": hint, "format_func": written} | rest
    choice: T = _bound(container.select_slider, label, options, first, first=first, **rest)
    return choice if choice in options else first


def clamped(value: object, low: N, high: N, otherwise: N) -> N:
    """Returns `value` brought between `low` and `high`; `otherwise` where it is no number at all.

    >>> clamped(7, 0, 5, 1), clamped(float("inf"), 0, 5, 1), clamped("3", 0, 5, 1), clamped(True, 0, 5, 1)
    (5, 1, 1, 1)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return otherwise
    if isinstance(value, float) and not math.isfinite(value):
        return otherwise
    return type(low)(min(max(value, low), high))


def _inside(key: str, low: float, high: float) -> None:
    """A value that was kept while the bounds were others comes back inside them."""
    held = st.session_state.get(key)
    if isinstance(held, int | float) and not low <= held <= high:
        st.session_state[key] = type(held)(min(max(held, low), high))


# Heads, layers, tokens --------------------------------------------------------------------------


def index(
    label: str,
    count: int,
    key: str,
    *,
    first: int = 0,
    container: Any = st,
    hint: str | None = None,
    always: bool = False,
) -> int:
    """Draws the choice of one of `count` things, counted from 0 as in `blocks.0.`: a row of buttons, or a
    list where they are many. `always` as `select` has it.
    """
    held = st.session_state.get(key)
    if isinstance(held, int) and not 0 <= held < count:
        st.session_state[key] = count - 1  # a smaller model: the nearest to where one was
    options: Any = {i: str(i) for i in range(count)} if always else range(count)
    many: dict[str, Any] = {"kind": "list", "width": 120} if count > FEW else {"kind": "row"}
    first = min(first, count - 1)
    return int(
        select(label, options, key, first=first, container=container, hint=hint, always=always, **many)
    )


def head(config: ModelConfig, topic: str) -> tuple[int, int]:
    """Draws the choice of a head, (layer, head), kept as `<topic>_layer` and `<topic>_head`."""
    with st.container(horizontal=True, gap="medium"):
        layer = index("Block", config.n_layers, f"{topic}_layer", always=True)
        return layer, index("Head", config.n_heads, f"{topic}_head", always=True)


# What a stranger wrote --------------------------------------------------------------------------


def index_of(text: object, below: int, *, nearest: bool = False) -> int | None:
    """Returns the index, 0 to `below` - 1, that a text names; None for anything else. With `nearest` one that
    is too large counts as the last there is.

    >>> index_of("3", 5), index_of("5", 5), index_of("-1", 5), index_of("٣", 5), index_of(None, 5)
    (3, None, None, None, None)
    >>> index_of("5", 5, nearest=True)
    4
    """
    number = number_of(text)
    if number is not None and nearest:
        return min(number, below - 1)
    return number if number is not None and number < below else None


def number_of(text: object) -> int | None:
    """Returns the whole number, 0 or more, that a text names; None for anything else, and for one of more
    than DIGITS digits.

    >>> number_of("12"), number_of("1e3"), number_of("9" * 400)
    (12, None, None)
    """
    if isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) <= DIGITS:
        return int(text)
    return None


def indexes_of(
    text: object, below: Sequence[int], between: str = "-", *, nearest: bool = False
) -> tuple[int, ...] | None:
    """Parses as many indexes as `below` has bounds, written with `between` between them; None for anything
    else. With `nearest` an index that is too large counts as the last there is.

    >>> indexes_of("2-0", (3, 1)), indexes_of("2-1", (3, 1)), indexes_of("2", (3, 1))
    ((2, 0), None, None)
    >>> indexes_of("2-1", (3, 1), nearest=True), indexes_of("a-1", (3, 1), nearest=True)
    ((2, 0), None)
    """
    parts = text.split(between) if isinstance(text, str) else []
    if len(parts) != len(below):
        return None
    indexes = [index_of(part, bound, nearest=nearest) for part, bound in zip(parts, below, strict=True)]
    return None if None in indexes else tuple(i for i in indexes if i is not None)


def url_index(key: str, below: int, *, nearest: bool = False) -> int | None:
    """Returns the index that the URL holds under `key`, as `index_of` does."""
    return index_of(st.query_params.get(key), below, nearest=nearest)


def put_index(key: str, value: int | None) -> None:
    """Keeps an index in the URL; None takes it out."""
    keep_in_url(key, None if value is None else str(value))


def picked(key: str, name: str) -> Any:
    """Returns the last value of the component `key` under `name`, before it is drawn; None where it sent
    nothing.
    """
    held = st.session_state.get(key)
    return held.get(name) if held is not None and hasattr(held, "get") else None


def put(key: str, value: Hashable) -> None:
    """Sets the value of a widget that the address holds, before it is drawn, and the address with it.

    Streamlit writes what a program sets into the address only once the widget has been drawn before.
    """
    st.session_state[key] = value
    with suppress(StreamlitAPIException):  # it is drawn already: then Streamlit writes it
        st.query_params[key] = str(value)


def read_url(key: str) -> str:
    """Returns what the URL holds under `key`, a stranger's text; nothing where it holds none."""
    return str(st.query_params.get(key, ""))


def held_or_linked(key: str) -> Any:
    """Returns the value of a control that is drawn later: what the session holds, else what the URL does;
    where somebody went back to an address, that alone counts.
    """
    named = st.query_params.get(key)
    return named if went_back() else st.session_state.get(key, named)


def keep_in_url(key: str, value: str | None) -> None:
    """Keeps a value that no widget holds in the URL of this page, and for the session; None takes it out.

    It is read there: coming back to the page, `arrived` puts it into the address again.
    """
    left = st.session_state.setdefault(_LEFT, {}).setdefault(page_drawn(), {})
    if value is None:
        left.pop(key, None)
    else:
        left[key] = value
    write_url(key, value)


def outdated(key: str, subject: Hashable) -> bool:
    """True if what the URL holds under `key` was left there for another `subject`, which has been replaced on
    this page since; what a link or going back has brought belongs to the subject that came with it.
    """
    before = st.session_state.get(key + _SUBJECT, subject)
    st.session_state[key + _SUBJECT] = subject
    left = st.session_state.get(_LEFT, {}).get(page_drawn(), {}).get(key)
    return before != subject and not went_back() and st.query_params.get(key) in (None, left)


def write_url(key: str, value: str | None) -> None:
    """Writes a value that is kept elsewhere into the URL; None takes it out."""
    if value is None:
        st.query_params.pop(key, None)
    elif st.query_params.get(key) != value:
        st.query_params[key] = value


def unsaid(keys: Iterable[str]) -> bool:
    """True if nobody has said anything of these controls, which are drawn later."""
    return all(held_or_linked(key) is None for key in keys)


def only(values: Iterable[T] | None, allowed: Iterable[T]) -> list[T]:
    """Returns the allowed ones of `values`, in their order: what a choice of several may hold."""
    known = set(allowed)
    return [value for value in values or () if value in known]


# A long text -----------------------------------------------------------------------------------


def box(label: str, limit: int, key: str, **rest: Any) -> str:
    """Draws a box for a person's text, of which `limit` characters are allowed, kept for the session. It
    takes a third more, so that the page can say by how much a text is too long.

    A browser keeps an even longer text to itself, without a word (say MUCH_LONGER beside the box): it would
    be more than the server reads (ui.operate.message_size_limit), and the page would lose its connection. No
    more than that is kept of a forger's text.
    """
    # Streamlit's own: a text of somebody's is for nobody's link.
    return st.text_area(label, key=key, max_chars=limit * 4 // 3, persist_state="session", **rest) or ""


def line(label: str, first: str, key: str, most: int, hint: str | None = None) -> str:
    """Returns a visitor's text, `first` until one is written: at most `most` characters, in the link under
    `key`.
    """
    # Streamlit's own: a line of text. No `max_chars`: with it a browser drops a longer paste without a word.
    typed = _bound(st.text_input, label, first, first=first, key=key, help=hint)
    text = markdown.whole(visible(typed or "")).replace("\0", " ")
    if len(text) > most:
        st.caption(f":material/info: {counted(len(text), 'character')}: only the first {most} are used.")
    return text[:most]
