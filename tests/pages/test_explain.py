"""The code behind a picture: there when it is asked for."""

from streamlit.testing.v1 import AppTest


def script() -> None:
    import streamlit as st

    from engine.parts.norms import LayerNorm
    from engine.sample import stages
    from ui.explain import answer, by_hand, measure_it, show_code

    answer("It is **7**.")
    measure_it(st.markdown, "further")
    by_hand(lambda *numbers: st.markdown(f"{numbers} by hand"), 3, 4)
    show_code(LayerNorm, stages)


FOLDS = ["Measure it", "By hand", "Show the code"]


def test_what_is_folded_is_drawn_when_it_is_opened():
    page = AppTest.from_function(script, default_timeout=60).run()
    assert not page.exception and [box.label for box in page.expander] == FOLDS
    assert [text.value for text in page.markdown] == ["It is **7**."] and not page.code
    page.session_state["code"] = True
    page.run()
    assert [code.value.splitlines()[0][:11] for code in page.code] == ["class Layer", "def stages("]
    assert page.caption[1].value == "`engine.sample.stages.stages`" and len(page.markdown) == 1
