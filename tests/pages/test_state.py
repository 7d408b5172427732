"""Whose browser it is, and what a URL may say."""

import re

from streamlit.testing.v1 import AppTest


def script():
    import streamlit as st

    from ui import state

    st.text(state.owner())
    st.text(state.owner())
    st.text(str(state.from_url("run")))
    st.text(str(state.from_url("view", ["a", "b"])))


def values(app):
    assert not app.exception
    return [text.value for text in app.text]


def test_owner_is_secret_and_lasts_as_long_as_the_session():
    app = AppTest.from_function(script, default_timeout=20).run()
    first, again, *_ = values(app)
    assert first == again == values(app.run())[0] and re.fullmatch(r"[A-Za-z0-9_-]{43}", first)
    assert values(AppTest.from_function(script, default_timeout=20).run())[0] != first


def test_only_plain_values_come_out_of_a_url():
    none = "None"
    for run, view, expected in (
        ("abc_-9", "b", ["abc_-9", "b"]),
        ("<script>", "c", [none] * 2),
        ("x" * 65, "", [none] * 2),
        ("a/../b", "a", [none, "a"]),
    ):
        app = AppTest.from_function(script, default_timeout=20)
        app.query_params["run"], app.query_params["view"] = run, view
        assert values(app.run())[2:] == expected


def test_numbers_without_an_end_leave_the_url_and_words_stay() -> None:
    def script() -> None:
        import streamlit as st

        from ui import state

        state.drop_endless()
        st.number_input("n", value=3, key="context", bind="query-params")
        st.text_input("t", key="text", bind="query-params")

    for value in ("inf", "-1e999", "9" * 400, "nan"):
        page = AppTest.from_function(script, default_timeout=60)
        page.query_params.update({"context": value, "text": "inf"})
        page.run()
        assert not page.exception and page.number_input[0].value == 3 and page.text_input[0].value == "inf"
