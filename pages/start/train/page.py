"""Train a tiny Transformer and watch it learn."""

import streamlit as st

from pages.start.train.desk import draw_desk
from ui.look import boundary

st.title("Train")
st.markdown(
    "A small Transformer learns to write, one token after the other, while you watch. A token is a character,"
    " unless *Data* says otherwise."
)
with boundary():
    draw_desk()
