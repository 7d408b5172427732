"""The map of a Transformer, drawn from a configuration."""

import streamlit as st

from pages.start.home import words
from pages.start.home.choice import choose_preset
from pages.start.home.map import draw_map
from ui import explain
from ui.look import boundary

st.title(words.TITLE)
st.markdown(words.SENTENCE)
with boundary():
    preset = choose_preset()
    with boundary():
        draw_map(preset)
explain.reading(words.MAP.see, words.MAP.why, words.MAP.attempt)
