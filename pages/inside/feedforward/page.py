"""The feed-forward networks: their neurons, their activation functions, their parameters."""

import streamlit as st

from pages.inside.feedforward.functions import functions_view
from pages.inside.feedforward.neurons import neurons_view
from pages.inside.feedforward.parameters import parameters_view
from ui.look import look_inside

VIEWS = {"Neurons": neurons_view, "Activation functions": functions_view, "Parameters": parameters_view}

st.title("Feed-forward")
st.markdown(
    "After the tokens have exchanged what they know, each thinks alone: its vector meets many neurons, is"
    " bent, and written back into the stream."
)

look_inside(VIEWS, key="feedforward_view")
