"""Numbers that books give for a passage and for a line, beside those that are counted here."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.measure.comparing import Passage, line_counts
from engine.measure.vocabulary import costs
from engine.tokenizers.published import PublishedTokenizer
from pages.input.tokens import shared
from pages.input.tokens.examples import LINE
from ui import explain
from ui.text.markdown import safe
from ui.text.tokens import show_bytes

WIDTH, LAYERS = 256, 4
# of 1,000 words: (characters, gpt2)
PUBLISHED_VALUES = {
    "V": ("65", "50,257"),
    "T": ("about 5,000", "about 1,300"),
    "V·d": ("16,640", "12,865,792"),
    "T²": ("25 M", "1.7 M"),
}
RUNNING = LINE + "\nAll:\nSpeak, speak.\n"  # how Tiny Shakespeare goes on
LAST = 4  # tokens of a line that are named


def draw_thousand_words(known: shared.Sources, found: Passage) -> None:
    """Characters against gpt2 for 1,000 words: measured here, and as a textbook has it."""
    st.markdown("##### 1,000 words, measured, and as a textbook has them")
    names = [name for name in ("characters", "gpt2") if name in found.rows]
    here = {
        cost.name: {"V": cost.vocab_size, "T": cost.tokens, "V·d": cost.embedding, "T²": cost.scores}
        for cost in costs({name: found.rows[name] for name in names}, WIDTH, LAYERS)
    }
    rows = []
    for label, published in PUBLISHED_VALUES.items():
        row = {"": label if label != "V·d" else f"V·d, d = {WIDTH}"}
        for name, said in zip(("characters", "gpt2"), published, strict=True):
            counted = f"{here[name][label]:,}" if name in here else "gpt2 is not here"
            row |= {f"{name}, measured": counted, f"{name}, textbook": said}
        rows.append(row)
    st.table(pd.DataFrame(rows).set_index(""))
    tail = f", and gpt2 makes {found.per_word('gpt2'):.2f} tokens of one" if "gpt2" in here else ""
    short = f" The text has only {found.words:,} words." if found.words < 1000 else ""
    st.caption(
        f"The textbook counts with 5 characters and 1.3 tokens a word. In {shared.SOURCES[known.name]} a"
        f" word, with the blanks around it, has {found.per_word('characters'):.2f} characters{tail}.{short}"
        " The sizes V and V·d are exact; the textbook's V of 65 is Tiny Shakespeare's."
    )


def draw_line(gpt2: PublishedTokenizer | None) -> None:
    """One line whose count differs from book to book, and why."""
    st.markdown("##### One line, counted")
    if gpt2 is None:
        st.caption(
            f"`{show_bytes(LINE.encode())}` has {len(LINE)} characters. gpt2's encoding is not here, so its"
            " tokens cannot be counted now."
        )
        return
    alone, with_empty, running = counted = line_counts(LINE, RUNNING, gpt2)
    st.table(
        pd.DataFrame(
            [
                {
                    "": one.what,
                    "characters": f"{one.characters}",
                    "gpt2 tokens": f"{len(one.ids)}",
                    "the last ones": " ".join(
                        f"`{show_bytes(gpt2.decode_bytes([i]))}`" for i in one.ids[-LAST:]
                    ),
                }
                for one in counted
            ]
        ).set_index("")
    )
    explain.takeaway(
        f"**“{safe(LINE.strip())}” is {alone.characters} characters and {len(alone.ids)} tokens**, computed"
        " now. A well-known lecture says 62 characters and 16 tokens, and lists 14 of them. 16 fits the"
        " first 62 characters of Tiny Shakespeare, with *both* line breaks, while the text goes on"
        f" ({len(running.ids)}). Alone, the two line breaks are one token ({len(with_empty.ids)}); before"
        " another word, gpt2's splitting pattern takes them apart. Where a text ends changes its tokens."
    )
