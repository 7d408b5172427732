"""Every control: what a link, a widget or another model left behind never comes back as a value."""

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.engine.cases import for_each
from tests.pages import helpers
from tests.pages.helpers import in_address, ran
from ui import widgets

STRANGE = ("zzz", "", "<b>", "-1", "1e3", "nan", "inf", "9" * 400, "٣", "\0")
SOME = ("zzz", "", "inf", "9" * 400)  # of them
KINDS = ("row", "pills", "list")


def choices() -> None:
    import streamlit as st

    from ui import session, widgets

    session.drop_endless()
    asked = dict(st.session_state["asked"])
    several = asked.pop("several", False)
    for kind in ("pills", "list") if several else ("row", "pills", "list"):
        draw = widgets.select_several if several else widgets.select
        st.session_state[f"got_{kind}"] = draw("Pick", key=kind, kind=kind, **asked)


def settled() -> None:
    import streamlit as st

    from ui import widgets

    st.session_state["got"] = widgets.settled({"a": "A", "b": "B"}, "pick", "a")


def settled_around() -> None:
    import streamlit as st

    from ui import session, widgets

    session.drop_endless()
    options = {"a": "A", "b": "B"}
    before, drawn = widgets.settled(options, "pick"), widgets.select("Pick", options, "pick")
    st.session_state["got"] = before, drawn, widgets.settled(options, "pick")


def numbers() -> None:
    import streamlit as st

    from ui import session, widgets

    session.drop_endless()
    low, high = st.session_state["asked"]
    st.session_state["whole"] = widgets.whole("Whole", low, high, 3, "n_whole", step=1)
    st.session_state["slide"] = widgets.slide("Slide", low, high, 3, "n_slide")
    st.session_state["float"] = widgets.slide("Float", low / 2, high / 2, 1.5, "n_float", step=0.5)
    values = [n for n in (1, 2, 4, 8) if n <= max(high, 1)]
    st.session_state["of"] = widgets.slide_over("Of", values, 4, "n_of", written=lambda n: f"{n} heads")
    st.session_state["on"] = widgets.switch("Switch", False, "n_on")


def firsts() -> None:
    import streamlit as st

    from ui import widgets

    a, n, on = st.session_state["asked"]
    st.session_state["got"] = (
        widgets.select("Row", ("a", "b", "c"), "f_row", first=a),
        widgets.select("List", ("a", "b", "c"), "f_list", first=a, kind="list"),
        widgets.select("Named", {"a": "Alpha", "b": "Beta"}, "f_named", first=a),
        *widgets.select_several("Several", ("a", "b"), "f_several", first=[a]),
        widgets.line("Line", a, "f_line", 40),
        widgets.whole("Whole", 0, 9, n, "f_whole"),
        widgets.slide("Slide", 0, 9, n, "f_slide"),
        widgets.slide_over("Of", (1, 2, 4, 8), n, "f_of", written="{:,}".format),
        widgets.switch("Switch", on, "f_on"),
    )


def indexes() -> None:
    import streamlit as st

    from engine.config import ModelConfig
    from ui import widgets

    count = st.session_state["asked"]
    st.session_state["got"] = widgets.index("Which", count, "which", first=2)
    config = ModelConfig(d_model=16 * count, n_layers=count, n_heads=count)
    st.session_state["head"] = widgets.head(config, "topic")


def held() -> None:
    import streamlit as st

    from ui import widgets

    linked = widgets.url_index("at", 5)
    st.session_state["got"] = 2 if linked is None else linked
    widgets.put_index("at", st.session_state.get("put"))


def opened(script: Any, asked: Any, **query: str) -> AppTest:
    return helpers.opened(script, {"asked": asked}, **query)


def got(page: AppTest, name: str = "got") -> Any:
    return page.session_state[name]


MAPPED = {"a": "Alpha", "b": "Beta", "c": "Gamma"}
BOTH = pytest.mark.parametrize("options", [("a", "b", "c"), MAPPED], ids=["sequence", "mapping"])


def picked(page: AppTest) -> Any:
    """What is chosen, which does not depend on how it is drawn."""
    first, *others = (got(page, f"got_{kind}") for kind in KINDS if f"got_{kind}" in page.session_state)
    assert all(one == first for one in others)
    return first


def named(text: str | list[str]) -> Any:
    return dict.fromkeys(KINDS, text)


def choose(page: AppTest, value: Any) -> AppTest:
    for kind in KINDS:
        if f"got_{kind}" in page.session_state:
            page.get_by_key(kind).set_value(value)
    return ran(page)


def urls(page: AppTest) -> Any:
    found = {in_address(page, kind) for kind in KINDS}
    assert len(found) == 1, found
    return found.pop()


@BOTH
def test_one_of_a_few_is_never_foreign(options: Any) -> None:
    page = opened(choices, {"options": options})
    assert picked(page) == "a" and urls(page) is None  # what equals the first is not in the URL
    for strange in SOME:
        assert picked(opened(choices, {"options": options}, **named(strange))) == "a", strange
    page = opened(choices, {"options": options}, **named("b"))
    assert picked(page) == "b" and urls(page) == "b"
    assert picked(choose(page, "c")) == "c"
    assert picked(choose(page, None)) == "a"  # deselected
    page = opened(choices, {"options": options, "first": "b"})
    assert picked(page) == "b" and urls(page) is None
    assert picked(opened(choices, {"options": options, "first": "gone"})) == "a"


def test_options_that_change_leave_nothing_behind() -> None:
    for first, then in ((("a", "b"), ("x", "y")), (MAPPED, {"x": "Ex", "y": "Why"}), ((1, 2), (3, 4))):
        page = opened(choices, {"options": first}, **named(str(list(first)[1])))
        assert picked(page) == list(first)[1]
        page.session_state["asked"] = {"options": then}
        assert picked(ran(page)) == next(iter(then))
        page.session_state["asked"] = {"options": first}
        assert picked(ran(page)) in first
    page = opened(choices, {"options": MAPPED}, **named("b"))
    page.session_state["asked"] = {"options": {"b": "Beta", "d": "Delta"}, "first": "d"}
    assert picked(ran(page)) == "b"  # what is still allowed stays


def test_the_url_holds_the_name_of_an_option_and_its_wording_means_nothing_there() -> None:
    page = opened(choices, {"options": MAPPED}, **named("c"))
    assert picked(page) == "c" and urls(page) == "c"
    assert picked(choose(page, "b")) == "b" and urls(page) == "b"
    assert picked(choose(page, "a")) == "a" and urls(page) is None
    counts = {"options": {100: "100 words", 0: "all"}, "first": 100}
    assert picked(opened(choices, counts, **named("0"))) == 0
    assert picked(opened(choices, counts, **named("all"))) == 100
    assert page.get_by_key("row").options == list(MAPPED.values())


def test_going_back_to_another_url_chooses_what_it_names() -> None:
    page = choose(opened(choices, {"options": MAPPED}, **named("b")), "c")
    for text, found, kept in (("b", "b", "b"), ("Alpha", "b", "b"), ("nonsense", "b", "b"), ("c", "c", "c")):
        page.query_params.update(named(text))
        assert picked(ran(page)) == found and urls(page) == kept, text


def test_an_address_from_before_the_first_choice_is_the_first_again() -> None:
    def script() -> None:
        import streamlit as st

        from ui import widgets

        widgets.arrived(st.session_state["page"])
        st.session_state["got"] = widgets.select("Pick", {"a": "Alpha", "b": "Beta"}, "pick")

    page = AppTest.from_function(script, default_timeout=30)
    page.session_state["page"] = "tokens"
    ran(page)
    page.get_by_key("pick").set_value("b")
    assert got(ran(page)) == "b" and in_address(page, "pick") == "b"
    page.query_params.clear()
    assert got(ran(page)) == "a" and in_address(page, "pick") is None
    page.query_params["pick"] = "b"  # and forward
    assert got(ran(page)) == "b"
    page.session_state["page"] = "another page"
    page.query_params.clear()
    assert got(ran(page)) == "b" and in_address(page, "pick") == "b"


@BOTH
def test_several_of_a_few_are_never_foreign(options: Any) -> None:
    asked = {"options": options, "first": ["b", "gone"], "several": True}
    page = opened(choices, asked)
    assert (
        picked(page) == ["b"] and in_address(page, "pills") is None
    )  # what equals the first is not in the URL
    page = opened(choices, {"options": MAPPED, "several": True}, **named(["Gamma", "Alpha"]))
    assert picked(page) == ["a", "c"] and page.query_params["pills"] == ["Gamma", "Alpha"]
    page = opened(choices, asked)
    for strange in SOME:
        assert set(picked(opened(choices, asked, **named(strange)))) <= {"b"}, strange
    assert picked(choose(page, ["c", "a"])) == ["a", "c"]  # as the options are ordered
    assert picked(choose(page, [])) == picked(ran(page)) == []


def values(page: AppTest) -> tuple[Any, ...]:
    return tuple(got(page, name) for name in ("whole", "slide", "float", "of", "on"))


def keys(text: str) -> dict[str, str]:
    return dict.fromkeys(("n_whole", "n_slide", "n_float", "n_of", "n_on"), text)


@for_each("strange", [*STRANGE, "99", "-5", "1e400", "-inf", "3.7"])
def test_a_number_is_whole_and_within_its_bounds(strange: str) -> None:
    whole, slide, floating, of, on = values(opened(numbers, (0, 10), **keys(strange)))
    assert isinstance(whole, int) and 0 <= whole <= 10 and isinstance(slide, int) and 0 <= slide <= 10
    assert isinstance(floating, float) and 0 <= floating <= 5
    assert of == 4 and on is False  # the link holds what is written


def test_a_number_is_what_the_link_says_and_what_is_typed() -> None:
    assert values(opened(numbers, (0, 10))) == (3, 3, 1.5, 4, False)
    page = opened(numbers, (0, 10), **(keys("7") | {"n_float": "4.5", "n_of": "8 heads", "n_on": "true"}))
    assert values(page) == (7, 7, 4.5, 8, True)
    page.number_input(key="n_whole").set_value(2)
    page.slider(key="n_slide").set_value(1)
    page.slider(key="n_float").set_value(0.5)
    page.select_slider(key="n_of").set_value(2)
    page.toggle(key="n_on").set_value(False)
    assert values(ran(page)) == (2, 1, 0.5, 2, False)
    page.number_input(key="n_whole").set_value(None)  # an emptied box
    assert values(ran(page))[0] == 3


def test_bounds_that_shrink_take_the_value_along() -> None:
    page = opened(numbers, (0, 10), n_whole="9", n_slide="9", n_float="4.5", n_of="8 heads")
    for bounds, *found in (
        ((0, 5), 5, 5, 2.5, 4),
        ((6, 8), 6, 6, 3.0, 4),
        ((2, 2), 2, 2, 1.0, 1),  # nothing to choose, and no row from which to choose 4
        ((-4, -2), -2, -2, -1.0, 1),
    ):
        page.session_state["asked"] = bounds
        assert list(values(ran(page))[:4]) == found, bounds
    assert values(opened(numbers, (7, 9)))[:2] == (7, 7)  # what is there first is brought inside too


def test_where_another_value_is_the_first_the_address_names_what_is_shown() -> None:
    one, other = ("a", 1, False), ("b", 4, True)
    page = opened(firsts, one)
    shown = got(page)
    assert not page.query_params
    page.session_state["asked"] = other
    assert got(ran(page)) == shown == got(opened(firsts, other, **page.query_params))
    assert len(page.query_params) == len(shown)
    page.session_state["asked"] = one
    assert got(ran(page)) == shown and not page.query_params


NAN, INF = float("nan"), float("inf")
NUMBERS = [(7, 5), (-7, 0), (3.9, 3), (NAN, 1), (-INF, 1), (None, 1), ("3", 1), (True, 1), (10**400, 5)]


@for_each("value, kept", NUMBERS)
def test_clamped(value: Any, kept: int) -> None:
    found = widgets.clamped(value, 0, 5, 1)
    assert found == kept and isinstance(found, int)


def test_an_index_is_of_the_model_that_is_shown() -> None:
    page = opened(indexes, 4, which="3", topic_layer="1", topic_head="2")
    assert got(page) == 3 and got(page, "head") == (1, 2)
    for strange in (*SOME, "4", "2.0"):
        page = opened(indexes, 4, which=strange, topic_layer=strange, topic_head=strange)
        assert got(page) == 2 and got(page, "head") == (0, 0), strange
    assert got(opened(indexes, 1)) == 0  # `first` is brought inside too


def test_another_model_has_fewer_or_many_more_heads() -> None:
    page = opened(indexes, 4, which="3", topic_head="3")
    page.session_state["asked"] = 2
    assert got(ran(page)) == 1 and got(page, "head") == (0, 1)  # the nearest to where one was
    page.session_state["asked"] = 12  # a list instead of a row
    assert 0 <= got(ran(page)) < 12 and got(page, "head")[1] < 12
    page.get_by_key("which").set_value(11)
    assert got(ran(page)) == 11
    page.session_state["asked"] = 3
    assert got(ran(page)) == 2


def test_an_index_in_the_url() -> None:
    for named, found in (("4", 4), ("5", 2), ("-1", 2), ("x", 2), ("٣", 2), ("", 2)):
        assert got(opened(held, None, at=named)) == found
    page = opened(held, None)
    page.session_state["put"] = 3
    assert got(ran(page)) == 2 and in_address(page, "at") == "3" and got(ran(page)) == 3
    page.session_state["put"] = None
    assert in_address(ran(page), "at") is None


@for_each("text", [*STRANGE, None, 3, b"3", ["3"], " 3", "+3", "3 ", "²", "1_000", "0x3"])
def test_what_is_no_plain_number_is_none(text: Any) -> None:
    assert widgets.number_of(text) is None and widgets.index_of(text, 10) is None


def test_indexes_are_below_their_bounds() -> None:
    assert widgets.index_of("0", 0) is None and widgets.index_of("007", 8) == 7
    assert widgets.number_of("9" * widgets.DIGITS) == 10**widgets.DIGITS - 1
    assert widgets.indexes_of("2-0", (3, 1)) == (2, 0) and widgets.indexes_of("1,2", (3, 3), ",") == (1, 2)
    for wrong in ("3-0", "2-1", "2", "2-0-0", "", "-", "a-b", None, 20, "-1-0"):
        assert widgets.indexes_of(wrong, (3, 1)) is None, wrong


def test_a_box_keeps_a_third_more_than_is_allowed_whatever_a_forger_sends() -> None:
    def page() -> None:
        from ui import widgets

        widgets.box("Yours", 300, "yours")

    drawn = AppTest.from_function(page, default_timeout=60).run()
    assert drawn.text_area(key="yours").proto.max_chars == 400, "a browser stops there by itself"
    drawn.text_area(key="yours").set_value("a" * 5000).run()
    assert len(drawn.session_state["yours"]) == 400


@pytest.mark.parametrize(("held", "shown"), [("b", "b"), ("zzz", "a"), (None, "a")])
def test_settled_is_what_select_will_show_of_what_the_session_holds(held: str | None, shown: str) -> None:
    at = AppTest.from_function(settled)
    at.session_state["pick"] = held
    assert at.run().session_state["got"] == shown


def test_settled_is_what_select_shows_before_and_after_it_is_drawn_and_when_a_link_names_another() -> None:
    page = ran(AppTest.from_function(settled_around))
    assert got(page) == ("a", "a", "a")
    page.query_params["pick"] = "b"
    assert got(ran(page)) == ("b", "b", "b")
    page.get_by_key("pick").set_value("a")
    assert got(ran(page)) == ("a", "a", "a")


def of_a_subject() -> None:
    import streamlit as st

    from ui import widgets

    st.session_state["got"] = widgets.outdated("at", st.session_state["asked"])
    widgets.keep_in_url("at", "0" if st.session_state["got"] else widgets.read_url("at") or "0")


def test_a_value_in_the_url_is_outdated_once_its_subject_is_replaced_by_hand() -> None:
    page = opened(of_a_subject, "ROMEO", at="3")
    assert not got(page) and in_address(page, "at") == "3"
    page.session_state["asked"] = "JULIET"
    assert got(ran(page)) and in_address(page, "at") == "0" and not got(ran(page))
    page.session_state["asked"] = "ROMEO"
    page.query_params["at"] = "5"  # a link names both
    assert not got(ran(page)) and in_address(page, "at") == "5"
