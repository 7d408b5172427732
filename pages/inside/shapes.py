"""The forward pass, step by step, with every shape."""

import streamlit as st

from engine.measure.shapes import trace
from engine.measure.tape import Tape
from ui import explain, shapes
from ui.subject import subject_bar

VIEWS = {"pass": "Forward pass"}

st.title("Shapes")
st.markdown("From token ids to probabilities, one operation at a time: what goes in, what comes out, what it costs, and the line of code that did it.")

with subject_bar() as subject:
    view = st.segmented_control(
        "View", list(VIEWS), default="pass", required=True, key="shapes_view", bind="query-params", format_func=lambda v: VIEWS.get(v, v),
        label_visibility="collapsed",
    )
    key, source = shapes.chosen_source(subject)
    st.markdown(f"{source.note} {shapes.total_sentence(source)}")
    shapes.walk(key, source, subject)
    explain.show_code(trace, Tape)
