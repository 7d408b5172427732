"""A fault outside every view: no trace reaches a visitor, and the log has it under the number that he sees."""

import re
from pathlib import Path

from tests.browser.conftest import settled
from tests.browser.server import serve

SCRIPT = """
import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from ui import server

def broken():
    raise KeyError("/home/somebody/secret")

if get_script_run_ctx(suppress_warning=True) is None:
    app = st.App(__file__, on_script_error=server.told)
else:
    st.button("Press", on_click=broken)
    if "fault" in st.query_params:
        broken()
"""


def test_no_trace_reaches_a_visitor_from_the_router_or_a_callback(page, tmp_path: Path) -> None:
    script = tmp_path / "faulty.py"
    script.write_text(SCRIPT)
    with serve(tmp_path, str(script), tmp_path, profile="local") as url:
        numbers = []
        for address, press in (("/?fault=1", False), ("/", True)):
            page.goto(url + address)
            settled(page)
            if press:
                page.get_by_role("button", name="Press").click()
            said = page.get_by_text("the fault is ours")
            said.wait_for()
            numbers.append(re.search(r"[0-9a-f]{8}", said.text_content()).group())
            shown = page.content()
            assert "secret" not in shown and "Traceback" not in shown and "KeyError" not in shown
        log = (tmp_path / "server.log").read_text()
    assert len(set(numbers)) == 2
    for number in numbers:
        assert number in log and "KeyError" in log[log.index(number) :]
