"""The code behind a picture: there when it is asked for."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest


def script() -> None:
    from engine.parts.norms import LayerNorm
    from engine.sample import stages
    from ui.explain import show_code

    show_code(LayerNorm, stages)
    show_code(stages)
    show_code(LayerNorm, label="Another")


def test_code_is_sent_when_it_is_opened():
    page = AppTest.from_function(script, default_timeout=60).run()
    assert (
        not page.exception
        and [box.label for box in page.expander] == ["Show the code", "Show the code", "Another"]
        and not page.code
    )
    page.session_state["code_Show the code_engine.sample.stages.stages"] = True
    page.run()
    assert [code.value.splitlines()[0][:11] for code in page.code] == ["def stages("] and page.caption[
        0
    ].value == "`engine.sample.stages.stages`"
    page.session_state["code_Another_engine.parts.norms.LayerNorm"] = True
    page.run()
    assert (
        len(page.code) == 2 and "class LayerNorm" in page.code[1].value and "ef forward" in page.code[1].value
    )
