"""The feed-forward networks: their neurons, their activation functions, their parameters."""

import streamlit as st

from ui.feedforward import neurons_view
from ui.feedforward_functions import functions_view
from ui.feedforward_parameters import parameters_view
from ui.subject import subject_bar

VIEWS = {"Neurons": neurons_view, "Activation functions": functions_view, "Parameters": parameters_view}

st.title("Feed-forward")
st.markdown("After the tokens have exchanged what they know, each thinks alone: its vector meets many neurons, is bent, and written back into the stream.")


@st.fragment
def look() -> None:
    with subject_bar() as subject:
        view = st.segmented_control(
            "View", list(VIEWS), default="Neurons", required=True, key="feedforward_view", bind="query-params", label_visibility="collapsed",
        )
        draw = VIEWS.get(view, neurons_view)
        if subject.config.ffn == "none" and draw is neurons_view:
            st.info("This model has no feed-forward networks (`ffn` is none), so there are no neurons. The other two views are there all the same.")
        else:
            draw(subject)


look()
