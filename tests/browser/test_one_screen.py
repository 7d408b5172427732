"""One screen, one answer: every view at 1280 x 720 has its figure, its controls and its answer on the screen,
few words, and uses the width that there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.browser.conftest import settled
from ui import site

WIDE, HIGH = 1280, 720
MOST_WORDS = 120
VIEWS = '.st-key-page_line [class*="_view"] [role=radio]'  # Train has presets there
PAGES = [entry.url for entry in site.built() if entry.url not in ("", "courses")]  # a list has no figure
RUN = (
    "train?data=python&d_model=32&n_layers=1&steps=24&eval_every=8&sample_every=8&snapshot_every=8"
    "&sample_length=200"
)
LOOKED_INTO = (  # with training time above them
    "embeddings?embed_view=map",
    "embeddings?embed_view=lookup",
    "shapes?shapes_view=pass",
    "attention?attention_view=heads",
    "attention?attention_view=steps",
    "attention?attention_view=switches",
    "residual?residual_view=lens",
    "feedforward?feedforward_view=neurons",
    "sampling?sampling_view=stages",
    "generation?generation_view=tokens",
    "generation?generation_view=beam",
)
MEASURE = r"""() => {
  const main = document.querySelector('[data-testid="stMainBlockContainer"]');
  const folded = e => e.closest('[data-testid="stExpander"]');
  const seen = e => {  // what scrolls inside or is cut off counts as far as it is seen
    let {left, top, right, bottom} = e.getBoundingClientRect();
    for (let up = e.parentElement; up && up !== main; up = up.parentElement) {
      if (getComputedStyle(up).overflow === 'visible') continue;
      const r = up.getBoundingClientRect();
      [left, top] = [Math.max(left, r.left), Math.max(top, r.top)];
      [right, bottom] = [Math.min(right, r.right), Math.min(bottom, r.bottom)];
    }
    return {left, top, right, bottom};
  };
  const shown = e => { const r = seen(e), s = getComputedStyle(e);
    return r.right > r.left + 1 && r.bottom > r.top + 1 && s.visibility !== 'hidden' && s.opacity !== '0'; };
  const leaf = e => e.matches('svg, canvas, button, input, textarea, img') || e.childElementCount === 0;
  const leaves = [...main.querySelectorAll('*')].filter(e => leaf(e) && !folded(e) && shown(e)
    && !e.closest('svg svg') && !e.matches('input[type=range]')  // of a slider: not seen
    && !e.closest('[data-testid="stPopoverBody"]'));
  const lowest = leaves.reduce((a, e) => !a || seen(e).bottom > seen(a).bottom ? e : a, null);
  const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  const aside = 'table, svg, code, pre, style, script, .katex-mathml, [data-testid="stDataFrame"],'
    + ' [data-testid="stIconMaterial"], [class*="gf-token"], [class*="gf-chip"], [class*="gf-text"]';
  let said = '';
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const e = node.parentElement;
    if (e.closest(aside) || !shown(e)) continue;
    const details = e.closest('details');
    if (details && !details.open && !e.closest('summary')) continue;
    said += ' ' + node.textContent;
  }
  const words = said.match(/\p{L}[\p{L}'’-]+/gu) || [];
  const answers = [...main.querySelectorAll('.st-key-answer')].filter(shown);
  const at = lowest ? seen(lowest) : {bottom: 0};
  const figures = [...main.querySelectorAll('.gf-figure, [class*="gf-"], canvas, table,'
    + ' [data-testid="stDataFrame"]')].filter(e => shown(e) && !folded(e));
  const rights = leaves.map(e => seen(e).right);
  return {bottom: Math.round(at.bottom), words: words.length, said: words.join(' '),
    lowest: lowest ? lowest.outerHTML.slice(0, 120) : '',
    answers: answers.map(e => e.innerText),
    headings: [...main.querySelectorAll('h1, h2')].map(e => e.innerText),
    figures: figures.length, right: Math.round(Math.max(...rights)),
    width: Math.round(main.getBoundingClientRect().width),
    wide: Math.round(Math.max(0, ...figures.map(e => e.getBoundingClientRect().right))
      - Math.min(9999, ...figures.map(e => e.getBoundingClientRect().left)))};
}"""


@pytest.fixture
def screen(context) -> Iterator[object]:
    """A page of 1280 x 720."""
    found = context.new_page()
    found.set_viewport_size({"width": WIDE, "height": HIGH})
    yield found
    found.close()


def measured(page) -> dict:
    """What is on the screen, once nothing moves any more: slow measurements have their answer."""
    settled(page)
    page.wait_for_function("document.querySelector('.st-key-answer')", timeout=30_000)
    page.wait_for_timeout(400)  # a figure is drawn after the script has run
    return page.evaluate(MEASURE)


def faults(found: dict) -> list[str]:
    said = []
    if found["bottom"] > HIGH:
        said.append(f"reaches down to {found['bottom']}: {found['lowest']}")
    if found["right"] > WIDE:
        said.append(f"reaches to the right of the screen: {found['right']}")
    if len(found["answers"]) != 1 or not re.search(r"[\d“]", found["answers"][0]):
        said.append(f"answers: {found['answers']}")
    if found["words"] > MOST_WORDS:
        said.append(f"{found['words']} words: {found['said']}")
    if len(found["headings"]) != 2:
        said.append(f"headings: {found['headings']}")
    if not found["figures"]:
        said.append("no figure")
    return said


@pytest.mark.parametrize("name", PAGES)
def test_every_view_has_figure_controls_and_answer_on_one_screen(screen, app_url, name):
    screen.goto(f"{app_url}/{name}")
    wrong = {}
    for view in range(max(1, views(screen))):
        chosen = choose(screen, view)
        screen.set_viewport_size({"width": WIDE, "height": HIGH})
        try:
            found = faults(measured(screen))
        except Exception as error:  # the next view may still be right
            found = [str(error).splitlines()[0]]
        if found:
            wrong[chosen] = found
    assert not wrong, "\n".join(f"{view}: {'; '.join(found)}" for view, found in wrong.items())


def views(page) -> int:
    page.wait_for_selector("h1")
    settled(page)
    return page.locator(VIEWS).count()


def choose(page, view: int) -> str:
    """Clicks on a view; its name."""
    buttons = page.locator(VIEWS)
    if not buttons.count():
        return "the only view"
    name = buttons.nth(view).inner_text()
    if view:
        before = page.locator("h2").first.inner_text()
        buttons.nth(view).click()
        page.wait_for_function("before => document.querySelector('h2')?.innerText !== before", arg=before)
        settled(page)  # until then folds of the view before are still there
    return name


def test_a_run_and_what_looks_into_it_are_on_one_screen_too(screen, app_url):
    screen.goto(f"{app_url}/{RUN}")
    button = screen.get_by_role("button", name="Train", exact=True)
    button.wait_for(timeout=60_000)
    settled(screen)
    button.click()
    screen.locator(".st-key-extend_button button:enabled").first.wait_for(timeout=120_000)
    screen.wait_for_selector(".gf-samples pre")
    wrong = {"after a run": faults(measured(screen))}
    run = screen.url.split("run=")[1].split("&")[0]
    for view in LOOKED_INTO:
        screen.goto(f"{app_url}/{view}&model=run-{run}")
        screen.locator(".gf-scrubber").wait_for(timeout=60_000)
        wrong[view] = faults(measured(screen))
    assert not any(wrong.values()), "\n".join(f"{view}: {found}" for view, found in wrong.items() if found)
