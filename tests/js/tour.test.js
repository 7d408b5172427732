import assert from "node:assert/strict"
import { test } from "node:test"
import { ANSWER, FIGURE, QUESTION, arrows, chosen, leads, sceneAt, scrolledBy, stepped } from "../../ui/assets/tour_state.js"

const free = { writes: false, busy: false }, moves = { writes: false, busy: true }, writing = { writes: true, busy: true }

test("arrows and a clicker go on and back", () => {
  assert.deepEqual(["ArrowRight", "PageDown", "ArrowLeft", "PageUp", "p", " "].map((key) => leads(key, free)), [1, 1, -1, -1, 0, 0])
})

test("a slider and who writes keep the arrows, and a clicker leads on from both", () => {
  for (const held of [moves, writing]) assert.deepEqual(["ArrowRight", "ArrowLeft", "PageDown", "PageUp"].map((key) => leads(key, held)), [0, 0, 1, -1])
})

/** All places from one on, by so many steps at a time, as "scene part". */
function way(from, by, course) {
  const found = []
  for (let at = stepped(from, by, course); at; at = stepped(at, by, course)) found.push(`${at.at} ${at.part}`)
  return found
}

test("a clicker on a stage leads through question, answer and figure, and the same way back", () => {
  const course = { count: 3, asks: [1], asked: new Set(), stage: true }
  const there = ["0 figure", "1 question", "1 answer", "1 figure", "2 figure"]
  assert.deepEqual(way({ at: 0, part: FIGURE }, 1, course), there.slice(1))
  assert.deepEqual(way({ at: 2, part: FIGURE }, -1, course), there.slice(0, -1).reverse())
})

test("a reader is asked once on the way, reads the answer and then the figure, and goes back from figure to figure", () => {
  const course = { count: 3, asks: [1], asked: new Set(), stage: false }
  assert.deepEqual(way({ at: 0, part: FIGURE }, 1, course), ["1 question", "1 answer", "1 figure", "2 figure"])
  assert.deepEqual(way({ at: 2, part: FIGURE }, -1, course), ["1 figure", "0 figure"])
  for (const part of [QUESTION, ANSWER]) assert.deepEqual(stepped({ at: 1, part }, -1, course), { at: 0, part: FIGURE })
  assert.deepEqual(way({ at: 0, part: FIGURE }, 1, { ...course, asked: new Set([1]) }), ["1 figure", "2 figure"])
})

test("numbers and letters choose an answer that there is", () => {
  assert.deepEqual(["1", "3", "4", "b", "C", "e", "0", "Enter", "f"].map((key) => chosen(key, 3)), [0, 2, -1, 1, 2, -1, -1, -1, -1])
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
