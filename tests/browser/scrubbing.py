"""What the scrubber and the figures below it show."""

import re

from playwright.sync_api import Page

PICTURE = """() => {
  const figure = document.querySelector('.gf-figure')
  if (!figure || !figure._fullData) return ''
  const plain = (one) => one && typeof one === 'object' && 'length' in one ? Array.from(one, plain) : one
  return JSON.stringify(figure._fullData.map(({ x, y, z }) => plain([x, y, z])))
}"""


def where(page: Page) -> str:
    return page.locator(".gf-scrubber output").inner_text()


def in_url(page: Page) -> str | None:
    found = re.search(r"[?&]step=([^&]+)", page.url)
    return found[1] if found else None
