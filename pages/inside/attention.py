"""Attention: who looks at whom, and what for."""

import streamlit as st

from ui.attention_heads import heads_view
from ui.attention_numbers import numbers_view
from ui.attention_scaling import scaling_view
from ui.attention_shared import shared_view
from ui.attention_steps import steps_view
from ui.attention_switches import switches_view
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
