"""A page that measures something slowly, for the tests of ui/background_jobs.py."""

import threading

GO = threading.Event()  # what a slow one waits for


def page(kind: str) -> None:
    import streamlit as st

    from engine.data.progress import Progress
    from engine.errors import ShapeError
    from tests.ui.slow_page import GO
    from ui.background_jobs import measured

    def steps():  # type: ignore[no-untyped-def]
        yield Progress(1, 4, "one so far")
        if kind in ("slow", "pausable"):
            GO.wait(60)
            yield Progress(2, 4)
        if kind == "refused":
            raise ShapeError("the two texts differ in length")
        if kind == "broken":
            raise ZeroDivisionError
        return 42

    offer = "Count" if kind == "offered" else ""
    key = ("test_slow", kind)
    st.write(measured(key, steps, "Counting", st.write, pausable=kind == "pausable", offer=offer))
