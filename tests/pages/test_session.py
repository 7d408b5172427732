"""Whose browser it is, and what a URL may say."""

import re

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.helpers import opened


def script():
    import streamlit as st

    from ui import session

    st.text(session.owner())
    st.text(session.owner())
    st.text(str(session.from_url("run")))
    st.text(str(session.from_url("view", ["a", "b"])))


def test_owner_is_secret_and_lasts_as_long_as_the_session():
    app = AppTest.from_function(script, default_timeout=20).run()
    first, again, *_ = (text.value for text in app.text)
    assert first == again == app.run().text[0].value and re.fullmatch(r"[A-Za-z0-9_-]{43}", first)
    assert AppTest.from_function(script, default_timeout=20).run().text[0].value != first


@pytest.mark.parametrize(
    ("run", "view", "expected"),
    [
        ("abc_-9", "b", ["abc_-9", "b"]),
        ("<script>", "c", ["None"] * 2),
        ("x" * 65, "", ["None"] * 2),
        ("a/../b", "a", ["None", "a"]),
    ],
)
def test_only_plain_values_come_out_of_a_url(run, view, expected):
    assert [text.value for text in opened(script, run=run, view=view).text[2:]] == expected
