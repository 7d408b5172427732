"""What the browser gets of a mystery patient, byte by byte: nothing tells its bug before it was named."""

import pytest

from engine.doctor.patient import patient_of
from engine.doctor.table import HEALTHY, shipped, subject_of
from tests.browser.conftest import settled

pytestmark = pytest.mark.exhaustive

NUMBER = next(n for n in range(100) if patient_of(n, shipped()).name not in (HEALTHY, "no_mask"))


def test_no_message_gives_the_bug_away(context, app_url):
    truth = patient_of(NUMBER, shipped()).name
    page, frames = context.new_page(), []
    page.on("websocket", lambda ws: ws.on("framereceived", lambda data: frames.append(data)))
    page.goto(
        f"{app_url}/bugs?bugs_view=patient&patient={NUMBER}&patient_tests=future-rows&words=true&code=true"
    )
    settled(page)
    page.wait_for_selector(".st-key-answer")
    page.wait_for_selector(".gf-figure .main-svg")
    sent = b"\n".join(frame if isinstance(frame, bytes) else frame.encode() for frame in frames).decode(
        errors="replace"
    )
    sent += page.content() + page.url
    assert "patient_curves" in sent and len(frames) > 3
    often = {name: sent.count(subject_of(name).title) for name in shipped()}
    assert often[truth] <= max(count for name, count in often.items() if name != truth), often
    assert truth not in sent
    for words in (subject_of(truth).story[:50], subject_of(truth).fix[:50]):
        assert words not in sent
    page.locator(".st-key-patient_guess input").click()
    page.get_by_role("option", name=subject_of(truth).title, exact=True).click()
    settled(page)
    page.locator(".st-key-patient_name_it button").click()
    page.wait_for_selector(".st-key-answer:has-text('Right')")
    assert subject_of(truth).title in page.locator(".st-key-answer").inner_text()
    page.close()
