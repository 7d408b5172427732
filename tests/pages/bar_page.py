"""A page that has nothing but the bar of the pages that look inside, and shows what it was given."""

import json
from typing import Any

from streamlit.testing.v1 import AppTest

from tests.pages import helpers


def script() -> None:
    import streamlit as st

    from ui.model_bar import subject_bar

    with subject_bar() as given:
        found = given.recording()
        st.json(
            {
                "key": list(given.key),
                "title": given.title,
                "ids": list(given.ids),
                "labels": given.labels,
                "text": given.text,
                "corpus": given.corpus,
                "vocabulary": len(given.vocabulary),
                "shape": list(found.logits.shape),
                "weight": float(given.model.embedding[0, 0]),
            }
        )


def opened(**query: str) -> AppTest:
    return helpers.opened(script, **query)


def given(page: AppTest) -> dict[str, Any]:
    assert not page.exception
    found: dict[str, Any] = json.loads(page.json[0].value)
    return found


def said(page: AppTest) -> str:
    return helpers.said(page, "error", "warning", "info", "caption")
