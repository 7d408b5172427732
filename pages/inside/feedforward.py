"""The feed-forward networks: their neurons, their activation functions, their parameters."""

import streamlit as st

from ui.feedforward import neurons_view
from ui.subject import subject_bar

VIEWS = {"neurons": "Neurons"}

st.title("Feed-forward")
st.markdown("After the tokens have exchanged what they know, each of them thinks alone: up to many neurons, through a bend, and back into the stream.")

with subject_bar() as subject:
    view = st.segmented_control(
        "View", list(VIEWS), default="neurons", required=True, key="feedforward_view", bind="query-params",
        format_func=VIEWS.__getitem__, label_visibility="collapsed",
    )
    if subject.config.ffn == "none":
        st.info("This model has no feed-forward networks (`ffn` is none), so there are no neurons to look at. Choose another model, or another view above.")
    else:
        neurons_view(subject)
