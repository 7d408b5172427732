import assert from "node:assert/strict"
import { test } from "node:test"
import { arrows, leads, sceneAt, scrolledBy } from "../../ui/assets/tour_state.js"

const free = { writes: false, busy: false }, moves = { writes: false, busy: true }, writes = { writes: true, busy: true }

test("arrows and a clicker go on and back", () => {
  assert.equal(leads("ArrowRight", 2, 9, free), 3)
  assert.equal(leads("PageDown", 2, 9, free), 3)
  assert.equal(leads("ArrowLeft", 2, 9, free), 1)
  assert.equal(leads("PageUp", 2, 9, free), 1)
})

test("the course has a first and a last scene", () => {
  assert.equal(leads("PageUp", 0, 9, free), undefined)
  assert.equal(leads("PageDown", 8, 9, free), undefined)
})

test("a slider keeps its arrows, and who writes keeps all", () => {
  assert.equal(leads("ArrowRight", 2, 9, moves), undefined)
  assert.equal(leads("PageDown", 2, 9, moves), 3)
  assert.equal(leads("PageDown", 2, 9, writes), undefined)
  assert.equal(leads("p", 2, 9, free), undefined)
})

/** An element that a page's selectors may name: `is` those that name it, `inside` those that name something around it. */
const node = (is, inside = []) => ({ matches: (selectors) => is.some((one) => selectors.includes(one)), closest: (selectors) => ([...is, ...inside].some((one) => selectors.includes(one)) ? {} : null) })
const BUTTON = node(["button"]), HEAD = node(['[tabindex="0"]']), SLIDER = node(["[role=slider]"])

test("a click leaves the arrows to the course, the keyboard gives them to what it came to", () => {
  for (const held of [null, BUTTON, HEAD]) assert.equal(arrows(held, false), false)
  assert.equal(arrows(BUTTON, true), false)
  assert.equal(arrows(HEAD, true), true)
  assert.equal(arrows(SLIDER, false), true)
})

test("an address is a scene where page and place are its", () => {
  const addresses = ["./?course=c&scene=1", "./tokens?tokens_view=compare&course=c&scene=2"]
  assert.equal(sceneAt("http://a/x/?model=m&course=c&scene=1", addresses), 0)
  assert.equal(sceneAt("http://a/x/tokens?course=c&scene=2&tokens_view=bpe", addresses), 1)
  assert.equal(sceneAt("http://a/x/sampling?course=c&scene=2", addresses), -1)
  assert.equal(sceneAt("http://a/x/tokens", addresses), -1)
})

test("a phone's page is scrolled as little as shows what is pointed at, and to its beginning where it is too large", () => {
  assert.equal(scrolledBy({ top: 100, bottom: 300 }, 50, 600), 0)
  assert.equal(scrolledBy({ top: 500, bottom: 700 }, 50, 600), 108)
  assert.equal(scrolledBy({ top: 20, bottom: 300 }, 50, 600), -38)
  assert.equal(scrolledBy({ top: 400, bottom: 1200 }, 50, 600), 342)
  assert.equal(scrolledBy({ top: 400, bottom: 700 }, 50, 600, 0.6), 0)
  assert.equal(scrolledBy({ top: 500, bottom: 700 }, 50, 600, 0.6), 108)
})
