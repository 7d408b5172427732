"""Taking a player home in a real Chromium: its picture as PNG and SVG, its data as CSV, and text that stays text."""

import base64
import csv
import io
import re
import xml.etree.ElementTree as ElementTree
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.visit import linked

XHTML = "{http://www.w3.org/1999/xhtml}"
HOSTILE = """<img src=x onerror=alert(1)>&"',"""
KV = "generation?generation_view=cache&kv_step=23"  # a step of its own: without one it plays by itself
CLOCK = "positions?positions_view=sinusoidal&sinusoid_part=clock&sinusoid_length=32&sinusoid_width=8"
ARCS = "attention?measure=true&attention_as=Arcs&attention_layer=1&attention_head=0"
CHIPS = "tokens?tokens_view=compare&compare_corpus=The+Python+manual&compare_text="
# Name, address, player, head of its table, its number of rows, words of its picture
PLAYERS = {
    name: (address, player, head, int(count) if count else None, seen)
    for name, address, player, head, count, seen in (
        [cell.strip() for cell in line.split("|")]
        for line in f"""\
bpe | tokens?tokens_view=bpe | .gf-bpe | merge,left_id,left,right_id,right,id,token,count,tokens_left | | The most frequent pair wins
writer | generation?generation_length=20&generation_seed=5 | .gf-writer | token_written,position,id,token,p, | | Upper bar: the model
kv | {KV} | .gf-kv | step,position,token,token_without,window_begins, | 24 | Identical so far: 24 of 24 tokens
sampler | sampling?sampling_temperature=0.7 | .gf-sampler | id,token,logits_logit,logits_probability, | 65 | Drawn: “
draws | sampling?sampling_draws=draws | .gf-sampler | id,token,probability,drawn,share | 65 | number of draws
clock | {CLOCK} | .gf-clock | hand,radians_per_position,wavelength,position,angle,sine,cosine | 4 | position 5
rope | positions?positions_view=rope&model=shakespeare-modern | .gf-rope | pair,theta,q_first,q_second, | 16 | ÷ √32: score
arcs | {ARCS} | .gf-arcs | head,query_position,query,key_position,key,weight | | Left: the token that attends.
heads | attention?model=shakespeare-classic&attention_sort=layer | .gf-heads-left | layer,head,row,column,weight | | block 3
head | attention?model=shakespeare-classic&attention_layer=1&attention_head=2 | .gf-heads-large | query_position,query,key_position,key,weight | | Head 1.2
""".splitlines()
    )
}
# What a PNG holds: [width, height, distinct colours, the colour of its corner]
DECODED = """async (text) => {
  const image = await createImageBitmap(await (await fetch("data:image/png;base64," + text)).blob())
  const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height }), context = canvas.getContext("2d")
  context.drawImage(image, 0, 0)
  const dots = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer)
  return [image.width, image.height, new Set(dots).size, [...context.getImageData(1, 1, 1, 1).data].slice(0, 3).join()]
}"""
BACKGROUND = """() => {
  const context = document.createElement("canvas").getContext("2d")
  context.fillStyle = getComputedStyle(document.querySelector(".gf-saves")).getPropertyValue("--st-background-color").trim()
  context.fillRect(0, 0, 1, 1)
  return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).join()
}"""


def opened(tab, url: str, address: str, player: str) -> None:
    model = "" if "model=" in address else "&model=shakespeare-classic"
    if urlsplit(tab.url).path.strip("/") == urlsplit(address).path:
        tab.goto("about:blank")  # the step that a player wrote into the address outlives a link on its page
    linked(tab, f"{url}/{address}{model}", player)
    tab.locator(f"{player} .gf-tools").wait_for(state="attached")


def saved(page, player: str, kind: str) -> bytes:
    what = "the data behind this figure" if kind == "CSV" else "this figure"
    with page.expect_download() as download:
        page.locator(player).get_by_role("button", name=f"Save {what} as {kind}", exact=True).click()
    assert download.value.suggested_filename.endswith(f".{kind.lower()}")
    return download.value.path().read_bytes()


def rows(page, player: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(saved(page, player, "CSV").decode())))


def words(svg: bytes) -> str:
    root = ElementTree.fromstring(svg)
    for style in list(root.iter(f"{XHTML}style")):
        style.text = ""
    return "".join(root.itertext())


FAST = ("heads",)  # one with a drawing


@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.exhaustive) for name in PLAYERS]
)
def test_a_player_is_saved_as_picture_and_table(tab, app_url, name):
    address, player, head, count, seen = PLAYERS[name]
    opened(tab, app_url, address, player)
    table = rows(tab, player)
    assert ",".join(table[0]).startswith(head)
    assert (
        len(table) - 1 == count if count else len(table) > 1 or name == "writer"
    )  # which may not have begun
    assert all(len(row) == len(table[0]) for row in table)

    svg = saved(tab, player, "SVG")
    assert seen in words(svg)
    root = ElementTree.fromstring(svg)
    assert not [*root.iter(f"{XHTML}input"), *root.iter(f"{XHTML}select")]
    assert "Save this figure" not in svg.decode()
    bare = re.sub(r"data:image/png;base64,[\w+/=]+|http://www.w3.org/\w+/\w+", "", svg.decode())
    assert "url(" not in bare and "http" not in bare, "nothing is fetched"
    assert all(node.get("src", "data:").startswith("data:") for node in root.iter())

    png = saved(tab, player, "PNG")
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height, colours, corner = tab.evaluate(DECODED, base64.b64encode(png).decode())
    box = tab.locator(player).bounding_box()
    assert abs(width - 2 * (box["width"] + 24)) < 4 and 500 < height < 6000
    assert colours > 50 and corner == tab.evaluate(BACKGROUND)


def test_hostile_text_stays_text(tab, app_url):
    alerts = []
    tab.on("dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss()))
    opened(tab, app_url, CHIPS + quote(HOSTILE), ".gf-chips")
    expect(tab.locator(".gf-chips-row").first).to_contain_text("onerror")
    tab.evaluate(
        "document.querySelector('.gf-chips-name').textContent = 'a\\u0001b\\ud800'"
    )  # what XML has no word for
    svg = saved(tab, ".gf-chips", "SVG")
    assert "a\ufffdb\ufffd" in words(svg)
    assert HOSTILE.replace(" ", "␣") in words(svg)
    root = ElementTree.fromstring(svg)
    assert list(root.iter(f"{XHTML}img")) == []
    assert not [name for node in root.iter() for name in node.attrib if name.startswith("on")]
    width, _, colours, _ = tab.evaluate(DECODED, base64.b64encode(saved(tab, ".gf-chips", "PNG")).decode())
    assert width > 1000 and colours > 50
    table = rows(tab, ".gf-chips")
    assert table[0] == ["tokenizer", "token", "id", "text", "first_byte", "bytes", "hex"]
    characters = "".join(row[6] for row in table[1:] if row[0] == "Characters")
    assert bytes.fromhex(characters).decode().startswith(HOSTILE)
    assert alerts == []
