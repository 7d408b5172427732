"""Attention: who looks at whom, and what for."""

import streamlit as st

from pages.inside.attention.heads import heads_view
from pages.inside.attention.numbers import numbers_view
from pages.inside.attention.scaling import scaling_view
from pages.inside.attention.shared_keys import shared_view
from pages.inside.attention.steps import steps_view
from pages.inside.attention.switches import switches_view
from ui.look import look_inside

VIEWS = {
    "Heads": heads_view,
    "Step by step": steps_view,
    "Switch things off": switches_view,
    "Numbers": numbers_view,
    "√d_k": scaling_view,
    "Shared keys": shared_view,
}

st.title("Attention: who looks at whom")
look_inside(VIEWS, key="attention_view")
