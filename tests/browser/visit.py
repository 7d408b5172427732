"""What is asked of a view wherever it is visited: its size, its words, its figures, and what axe-core finds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.conftest import follow, settled
from tests.browser.server import ROOT

WIDE, HIGH = 1280, 720
MOST_WORDS = 120
MOST_OF_AN_ANSWER = 45  # words, numbers apart; 35 are meant: Extrapolation's, a long one, has 34
WORD = r"[^\W\d_][\w'’-]+"
TARGET = 24  # px: WCAG 2.2, 2.5.8; what is smaller needs room around it, which a figure may not have
VIEWS = '.st-key-page_line [class*="_view"] [role=radio]'  # Train has presets there
OVERLAPS = (Path(__file__).parent / "overlaps.js").read_text(encoding="utf-8")
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
needs_axe = pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed (npm ci brings it)")


# (rule, what the element's HTML holds): Streamlit 1.67's own, which no page of ours can change.
STREAMLITS = (
    ("list", "stSidebarNavItems"),  # sections stand between the list and its items
    ("listitem", "<li"),  # the same, seen from the items
    ("empty-table-header", "<th"),  # of the column of row names in its tables
    ("scrollable-region-focusable", "stDataFrame"),  # it has its own canvas and keys
    ("scrollable-region-focusable", '<pre class="st-emotion'),  # of its code; the button copies it whole
    ("scrollable-region-focusable", "e18bzgcu2"),  # st.table, where it is wider than its place
    ("aria-allowed-attr", "stExpander"),
    ("region", "stToast"),
)
# What Streamlit fades while a script runs; a page may draw a part of itself again at any time.
FADES = """[data-stale="true"], [data-testid="stExpander"] summary > div
    { opacity: 1 !important; transition: none !important }"""
AT_REST = """() => !document.querySelector('[data-stale="true"]') && document.getAnimations().every((one) =>
  one.playState !== 'running' || one.effect?.getComputedTiming().endTime === Infinity)"""
FIND = """(only) => axe.run({ exclude: ['pre code > span:nth-child(n+80)'] }, { ...(only ? { runOnly: only } : {}), rules: only ? {} : { 'target-size': { enabled: true } }, resultTypes: ['violations'] }).then((found) =>
  found.violations.flatMap(({ id, nodes }) => nodes.map((node) => [id, node.html.slice(0, 300), node.failureSummary.slice(0, 400)])))"""
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
  const all = [...main.querySelectorAll('*')].flatMap(e => e.shadowRoot  // what a map says of a part lies below it
    ? [...e.shadowRoot.querySelectorAll('*')].filter(one => !one.closest('.panel')) : [e]);
  const leaves = all.filter(e => leaf(e) && !folded(e) && shown(e)
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
  const figures = all.filter(e => e.matches('.gf-figure, [class*="gf-"], canvas, table,'
    + ' [data-testid="stDataFrame"]') && shown(e) && !folded(e));
  return {bottom: Math.round(at.bottom), words: words.length, said: words.join(' '),
    lowest: lowest ? lowest.outerHTML.slice(0, 120) : '',
    answers: answers.map(e => e.innerText),
    headings: [...main.querySelectorAll('h1, h2')].map(e => e.innerText),
    figures: figures.length, right: Math.round(Math.max(...leaves.map(e => seen(e).right)))};
}"""
STAGE = """() => {
  const plots = [...document.querySelectorAll('.gf-filmed')].filter(e => !e.closest('[data-testid="stExpander"]')).map(e => e.getBoundingClientRect())
  const size = e => parseFloat(getComputedStyle(e).fontSize) * e.getBoundingClientRect().width / e.offsetWidth
  const answers = [...document.querySelectorAll('.st-key-answer p')]
  return {wide: document.documentElement.scrollWidth - innerWidth,
    right: Math.max(...[...document.querySelectorAll('[data-testid="stMainBlockContainer"] [data-testid="stElementContainer"]')].map(e => e.getBoundingClientRect().right)) - innerWidth,
    share: plots.length ? (Math.max(...plots.map(r => r.bottom)) - Math.min(...plots.map(r => r.top))) / innerHeight : 0,
    bottom: Math.max(0, ...plots.map(r => r.bottom), ...answers.map(e => e.getBoundingClientRect().bottom)) - innerHeight,
    answer: Math.min(99, ...answers.map(size)),
    caption: Math.min(99, ...[...document.querySelectorAll('[data-testid="stCaptionContainer"] p')].filter(e => e.offsetWidth).map(size)),
    ticks: Math.min(99, ...[...document.querySelectorAll('.gf-plot .main-svg text')].filter(e => e.textContent.trim() && e.getBoundingClientRect().width > 0)
      .map(e => { const m = e.getScreenCTM(); return parseFloat(getComputedStyle(e).fontSize) * Math.hypot(m.a, m.b) })),
    sidebar: getComputedStyle(document.querySelector('[data-testid="stSidebar"]') ?? document.body).display}
}"""
SAVES = """() => [...document.querySelectorAll('[data-testid="stMain"] .gf-tools button')]
  .map((button) => button.getBoundingClientRect()).map(({ width, height }) => Math.min(width, height)).filter((size) => size > 0)"""
SIDEWAYS = """() => { const main = document.querySelector('[data-testid="stMain"]')
  return [main.scrollWidth - main.clientWidth, document.documentElement.scrollWidth - innerWidth] }"""
SCHEME = (
    "scheme => getComputedStyle(document.querySelector('[data-testid=\"stApp\"]')).colorScheme === scheme"
)


def opened(page, address: str, answer: str = ".st-key-answer") -> None:
    page.goto(address)
    page.wait_for_selector("h1")
    page.locator(answer).first.wait_for()
    settled(page)


def linked(tab, address: str, answer: str = ".st-key-answer") -> None:
    """Opens an address of the app; where it is open already, as a link inside it does."""
    if tab.url == "about:blank":
        return opened(tab, address, answer)
    follow(tab, address)
    tab.locator(answer).first.wait_for()
    settled(tab)  # an answer of the page before may be the one that is seen


def views(page) -> Iterator[str]:
    """Goes through the views of the open page, from the one that is chosen on; yields their names."""
    buttons = page.locator(VIEWS)
    if not buttons.count():
        yield "the only view"
    for name in buttons.all_inner_texts():
        choose(page, name)
        yield name


def choose(page, name: str) -> None:
    button = page.locator(VIEWS).get_by_text(name, exact=True).first
    chosen = page.locator(f"{VIEWS}[aria-checked=true]").first.inner_text()
    if chosen.strip() != name.strip():
        before = page.locator("h2").first.inner_text()
        button.click()
        page.wait_for_function("before => document.querySelector('h2')?.innerText !== before", arg=before)
        settled(page)  # the folds of the view before are gone
    page.locator(".st-key-answer").first.wait_for()
    settled(page)


def screen_faults(page) -> list[str]:
    """What a screen of 1280 x 720 does not show of the view, or shows too much of."""
    found, said = page.evaluate(MEASURE), []
    if found["bottom"] > HIGH:
        said.append(f"reaches down to {found['bottom']}: {found['lowest']}")
    if found["right"] > WIDE:
        said.append(f"reaches to the right of the screen: {found['right']}")
    if len(found["answers"]) != 1 or not found["answers"][0].strip():
        said.append(f"answers: {found['answers']}")
    answer = sum(len(re.findall(WORD, each)) for each in found["answers"])  # which has room of its own
    if answer > MOST_OF_AN_ANSWER:
        said.append(f"an answer of {answer} words: {found['answers']}")
    if found["words"] - answer > MOST_WORDS:
        said.append(f"{found['words']} words: {found['said']}")
    if len(found["headings"]) != 2:
        said.append(f"headings: {found['headings']}")
    if not found["figures"]:
        said.append("no figure")
    return said


def violations(page, only: str | None = None) -> list[tuple[str, str, str]]:
    """(rule, element, what would help) of what is ours; of one rule `only`, or of all."""
    settled(page)
    page.wait_for_function(AT_REST)
    page.add_style_tag(content=FADES)
    if not page.evaluate("'axe' in window"):
        page.add_script_tag(path=str(AXE))
    return [
        (rule, html, help_)
        for rule, html, help_ in page.evaluate(FIND, only)
        if not any(rule == name and part in html for name, part in STREAMLITS)
    ]


def shown_in(page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(SCHEME, arg=scheme)
    settled(page)


def stage_faults(page, least: float, large: bool = False) -> list[str]:
    """What does not hold of a view on the stage, once its figures have followed the size of the screen."""
    holds = f"""([least, large]) => {{ const found = ({STAGE})()
      return {{ found, wrong: Object.entries({{
        "as wide as the screen": found.wide <= 0 && found.right <= 0,
        "as high": found.bottom <= 1,
        "without the menu": found.sidebar === "none",
        "the figure is large": found.share >= least,
        "letters are large": !large || (found.answer >= 22 && found.caption >= 22 && found.ticks >= 16),
      }}).filter(([, held]) => !held).map(([what]) => what) }} }}"""
    try:
        page.wait_for_function(
            f"wanted => !({holds})(wanted).wrong.length", arg=[least, large], timeout=15_000
        )
    except Exception as error:
        if "Timeout" not in str(error):
            raise
    last = page.evaluate(holds, [least, large])
    return [f"{what}: {last['found']}" for what in last["wrong"]]
