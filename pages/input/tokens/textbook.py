"""1,000 words by the rule of thumb and as they are counted here, and one line in three surroundings."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.data.tokenizers.published import PublishedTokenizer
from engine.measure.tokens.vocabulary import Passage, costs, line_counts
from pages.input.tokens import shared, words
from pages.input.tokens.words_examples import LINE
from ui.text.markdown import safe
from ui.text.tokens import show_bytes

WIDTH, LAYERS = 256, 4
# of 1,000 words of 5 characters and 1.3 tokens: (characters, gpt2)
RULE = {
    "V": ("65", "50,257"),
    "T": ("about 5,000", "about 1,300"),
    "V·d": ("16,640", "12,865,792"),
    "T²": ("25 M", "1.7 M"),
}
RUNNING = LINE + "\nAll:\nSpeak, speak.\n"  # how Tiny Shakespeare goes on
LAST = 4  # tokens of a line that are named


def draw_thousand_words(known: shared.Sources, passage: Passage) -> None:
    """Characters against gpt2 for 1,000 words: measured here, and by the rule of thumb."""
    st.markdown("### Characters against BPE, for 1,000 words")
    names = [name for name in ("characters", "gpt2") if name in passage.rows]
    here = {
        cost.name: {"V": cost.vocab_size, "T": cost.tokens, "V·d": cost.embedding, "T²": cost.scores}
        for cost in costs({name: passage.rows[name] for name in names}, WIDTH, LAYERS)
    }
    rows = []
    for label, published in RULE.items():
        row = {"": label if label != "V·d" else f"V·d, d = {WIDTH}"}
        for name, rule in zip(("characters", "gpt2"), published, strict=True):
            counted = f"{here[name][label]:,}" if name in here else "gpt2 is not on this machine"
            row |= {f"{name}, measured": counted, f"{name}, rule of thumb": rule}
        rows.append(row)
    st.table(pd.DataFrame(rows).set_index(""))
    tokens = passage.per_word("gpt2") if "gpt2" in here else None
    st.caption(words.thousand_words(words.TEXTS[known.name], passage.per_word("characters"), tokens))


def draw_line(gpt2: PublishedTokenizer | None) -> None:
    """Draws one line whose count depends on what follows it."""
    st.markdown("### One line, counted")
    if gpt2 is None:
        st.caption(words.uncounted_line(show_bytes(LINE.encode()), len(LINE)))
        return
    alone, with_empty, running = counted = line_counts(LINE, RUNNING, gpt2)
    st.table(
        pd.DataFrame(
            [
                {
                    "": line.what,
                    "characters": f"{line.characters}",
                    "gpt2 tokens": f"{len(line.ids)}",
                    "last tokens": " ".join(
                        f"`{show_bytes(gpt2.decode_bytes([i]))}`" for i in line.ids[-LAST:]
                    ),
                }
                for line in counted
            ]
        ).set_index("")
    )
    st.markdown(
        words.single_line(
            safe(LINE.strip()), alone.characters, len(alone.ids), len(with_empty.ids), len(running.ids)
        )
    )
