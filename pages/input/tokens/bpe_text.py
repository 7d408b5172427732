"""The text that merges are learned from, and the passage in which they are watched."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from engine.data import corpora
from engine.data.tokenizers.bpe import Level, Split
from engine.data.tokenizers.bpe_watch import MAX_SYMBOLS, affordable
from engine.errors import CorpusError
from ui import session, widgets
from ui.text.markdown import safe, whole

EXAMPLES = {
    "Sea shells": (
        "She sells sea shells by the sea shore.\nThe shells that she sells are sea shells, I'm sure.\nSo if"
        " she sells sea shells on the sea shore,\nI'm sure that the shells are sea shore shells.\n"
    ),
    "lowest, newest": (
        "low low low low low lower lower newest newest newest newest newest newest widest widest widest"
    ),
    "Code": (
        "for i in range(10):\n    if i % 2 == 0:\n        print(i, i ** 2)\n    else:\n        print(i, i **"
        " 3)\n\nfor j in range(10):\n    print(j, j ** 2)\n"
    ),
    "Languages": (
        "The cat sits on the mat. The dog sits beside the cat.\n那只猫坐在垫子上。那只狗坐在猫旁边。\nबिल्ली"
        " चटाई पर बैठी है। कुत्ता बिल्ली के पास बैठा है।\n\u0627\u0644\u0642\u0637\u0629"
        " \u062a\u062c\u0644\u0633 \u0639\u0644\u0649 \u0627\u0644\u0633\u062c\u0627\u062f\u0629."
        " \u0627\u0644\u0643\u0644\u0628 \u064a\u062c\u0644\u0633 \u0628\u062c\u0627\u0646\u0628"
        " \u0627\u0644\u0642\u0637\u0629.\n"
    ),
    "Emoji": (
        "🎉 party 🎉 party 🎉\nfamily 👩\u200d👩\u200d👧 and family 👨\u200d👩\u200d👦, thumbs 👍 👍🏽"
        " 👍🏿\ncafe\u0301 and café look alike\n"
    ),
    "aaaa": "aaaa aaaaa aaaaaaa abab ababab abababab",
}
FIRST = "Sea shells"
OWN, SHAKESPEARE, PYTHON = "own", "shakespeare", "python"
SOURCES = {OWN: "This text", SHAKESPEARE: "Tiny Shakespeare", PYTHON: "Python manual"}
SHOWN = 2_000  # characters in which merges are watched
IN_LINK = 1_500  # characters of a text that a link can hold
TYPED, LINK = "bpe_typed", "bpe_text"


@dataclass(frozen=True)
class Texts:
    """`learned` is what merges are learned from, `passage` where they are shown; `name` says whose text it
    is.
    """

    learned: str
    passage: str
    name: str

    @property
    def same(self) -> bool:
        return self.learned == self.passage


def choose_texts(typed: str, level: Level, split: Split, source: str) -> Texts | None:
    """Returns the text to learn from and the passage to watch; says what was left out. None, with a sentence,
    where there is nothing to learn from.
    """
    limit = session.profile().max_watched
    if not typed and source == OWN:
        st.info("The box is empty. Type or paste a text to learn merges from, or choose an example.")
        return None
    if len(typed) > limit:
        over = len(typed) - limit
        st.error(
            f"The text has {len(typed):,} characters; at most {limit:,} are allowed here. Shorten it by"
            f" {over:,}."
        )
        return None
    learned, name = (typed, "your text") if source == OWN else _corpus(source)
    if not typed:
        st.caption("The box is empty: the beginning of the training text is shown instead.")
    passage = (typed or learned)[:SHOWN]
    kept = affordable(learned, level, split, min(limit, MAX_SYMBOLS))
    if kept < len(learned):
        why = (
            "Without splitting into words, nothing occurs twice"
            if split == "none"
            else "Its words hardly ever recur"
        )
        part = f"its first {kept:,} of {len(learned):,} characters"
        st.caption(
            f":material/info: {why}, so a long text would take too much time and memory: merges are learned"
            f" from {part}."
        )
    if len(typed) > SHOWN:
        st.caption(
            f":material/info: Merges are learned from all {len(typed):,} characters; the first {SHOWN:,} are"
            " shown as tokens."
            if source == OWN
            else f":material/info: The first {SHOWN:,} of {len(typed):,} characters are shown."
        )
    return Texts(learned[:kept], passage, name)


def typed_text() -> str:
    """Draws the examples and, folded, the box. Returns what stands in it, in whole characters."""
    held = st.session_state.get(TYPED)
    text = held if isinstance(held, str) else widgets.read_url(LINK) or EXAMPLES[FIRST]
    if held is None or whole(text) != text:  # half a character cannot be sent to the browser
        st.session_state[TYPED] = whole(text)
    # Streamlit's own: a button that puts a text into the box; the box has the value, and is in the link.
    st.pills(
        "Examples",
        list(EXAMPLES),
        key="bpe_example",
        on_change=_take,
        label_visibility="collapsed",
        wrap=True,
    )
    with st.popover("Your text", icon=":material/edit:"):
        text = _box()
    return text


def _box() -> str:
    most = session.profile().max_watched
    text = widgets.box(
        "Your text",
        most,
        TYPED,
        height=130,
        width=420,
        help=(
            f"Press Ctrl+Enter to apply. Up to {most:,} characters may be pasted; {widgets.MUCH_LONGER} Only"
            " short texts fit into a link."
        ),
    )
    widgets.write_url(LINK, None if text == EXAMPLES[FIRST] or len(text) > IN_LINK else text)
    if len(text) > IN_LINK:
        st.caption(f"This text is not part of the link: {len(text):,} characters are too many.")
    return text


def _take() -> None:
    chosen = st.session_state.get("bpe_example")
    if chosen in EXAMPLES:
        st.session_state[TYPED] = EXAMPLES[chosen]
        st.session_state["bpe_example"] = None


def _corpus(source: str) -> tuple[str, str]:
    """(text, its name). The Python manual stands in for a Tiny Shakespeare that is not here: it needs no
    network.
    """
    manual = f"the {SOURCES[PYTHON]}"
    if source == SHAKESPEARE and corpora.shakespeare_path() is None:
        st.caption(
            ":material/info: Tiny Shakespeare is not on this machine (the Train page can download it), so the"
            " Python manual is used."
        )
        source = PYTHON
    try:
        return session.corpus(source).text, SOURCES[source] if source == SHAKESPEARE else manual
    except CorpusError as error:
        st.caption(f":material/info: {safe(str(error))}. The Python manual is used.")
        return session.corpus(PYTHON).text, manual
