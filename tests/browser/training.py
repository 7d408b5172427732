"""Training in the browser, as a person does it."""

import re

from playwright.sync_api import Locator, Page

from tests.browser import visit
from tests.browser.conftest import settled

LINK = "/train?data=python&d_model=64&n_layers=2&steps=400&eval_every=20&sample_every=20&snapshot_every=50&sample_length=60"
CONTINUE = ".st-key-extend_button button:visible"  # the run panel's own; the table of runs has one as well


def opened(page: Page, app_url: str, link: str = LINK) -> None:
    visit.opened(page, app_url + link, ".st-key-page_line button")


def begun(page: Page, app_url: str, link: str = LINK, steps: int = 3) -> None:
    opened(page, app_url, link)
    button(page, "Train").click()
    wait_for_steps(page, steps)


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


# how far the run of the page is: while it goes on, and after its end
BAR = '.st-key-run_panel :is(.gf-follow, [data-testid="stProgress"])'


def ended(page: Page) -> None:
    page.locator(CONTINUE).wait_for()
    settled(page)


def steps_done(page: Page) -> int:
    said = page.locator(BAR).first.inner_text()
    found = re.search(r"step ([\d,]+) of", said)
    assert found, said
    return int(found[1].replace(",", ""))


def wait_for_steps(page: Page, least: int) -> None:
    page.wait_for_function(
        """([bar, least]) => {
          const found = document.querySelector(bar)?.innerText.match(/step ([\\d,]+) of/)
          return found && Number(found[1].replaceAll(',', '')) >= least
        }""",
        arg=[BAR, least],
    )
