"""Who owns the step that is looked at: what the scrubber, a link and another model do to it. On a page that
has nothing else.
"""

from streamlit.testing.v1 import AppTest

from ui import training_step
from ui.training_step import NEWEST


def script() -> None:
    import streamlit as st

    from ui import training_step

    model, steps, asked = st.session_state["given"]
    if asked is not None:  # as the scrubber's callback does, before the script runs
        training_step.move(model, asked)
    st.text(str(training_step.current(model, steps)))


class Page:
    """A session: each call is a run of the script."""

    def __init__(self, **query: str) -> None:
        self.page = AppTest.from_function(script, default_timeout=60)
        self.page.query_params.update(query)

    def __call__(
        self, model: str = "run-a", steps: tuple[int, ...] = (0, 10, 20), moved: int | None = None
    ) -> tuple[int, str | None]:
        self.page.session_state["given"] = (model, steps, moved)
        self.page.run()
        assert not self.page.exception
        named = self.page.query_params.get(training_step.IN_URL)
        return int(self.page.text[0].value), named[0] if isinstance(named, list) else named

    def goes_to(self, named: str | None) -> None:
        self.page.query_params.pop(training_step.IN_URL, None)
        if named is not None:
            self.page.query_params[training_step.IN_URL] = named


def test_the_newest_is_followed_until_the_scrubber_is_moved_and_after_it_came_back():
    page = Page()
    assert page() == (NEWEST, None) == page(steps=(0, 10, 20, 30))
    assert page(moved=10) == (10, "10") == page(steps=(0, 10, 30))
    assert page(moved=NEWEST) == (NEWEST, None) == page()


def test_a_link_names_the_first_step_and_the_scrubber_outranks_it():
    page = Page(step="20")
    assert page() == (20, "20")
    assert page(moved=0) == (0, "0")


def test_a_message_that_still_carries_an_old_step_changes_nothing():
    page = Page(step="14")
    assert page() == (10, "10")
    assert page(moved=20) == (20, "20")
    for old in ("14", "10", None):  # sent by the browser before it heard of 20
        page.goes_to(old)
        assert page() == (20, "20")
    page.goes_to("0")
    assert page(moved=10) == (10, "10"), "with a new move"
    page.goes_to("1")
    assert page() == (0, "0"), "a new link"


def test_each_model_begins_at_its_newest_and_the_last_one_is_found_where_it_was_left():
    page = Page(step="10")
    assert page("run-a") == (10, "10")
    assert page("shipped", ()) == (NEWEST, None)
    assert page("run-a") == (10, "10"), "nothing else was scrubbed in between"
    assert page("run-b") == (NEWEST, None)
    assert page("run-a") == (NEWEST, None), "one step is kept, of one model"
    for moved, shown in ((14, 10), (16, 20), (99, 20), (5, 0)):  # the nearest that is kept
        assert page("run-a", moved=moved) == (shown, str(shown))


def test_what_is_remembered_of_the_url_has_an_end():
    page = Page()
    for one in range(50):
        page(steps=tuple(range(50)), moved=one)
    assert len(page.page.session_state[training_step.HELD].url_steps) == training_step.REMEMBERED
