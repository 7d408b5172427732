// The grid of heads, as far as it needs no page.
import assert from "node:assert/strict"
import { test } from "node:test"

import { labels, neighbour, squared, strongest, telling, words } from "../../pages/inside/attention/headgrid_state.js"

test("lower triangles become squares", () => {
  const two = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
  assert.deepEqual([...squared(two, 3)], [1, 0, 0, 2, 3, 0, 4, 5, 6, 7, 0, 0, 8, 9, 0, 10, 11, 12])
  assert.deepEqual([...squared(Uint8Array.of(9), 1)], [9])
})

// Three to a row, the last row has two; rows need not begin at the very same height.
const BOXES = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => ({ left: 30 * (i % 3), top: 40 * Math.floor(i / 3) + (i % 3) * 0.3, width: 24 }))

test("arrows lead to the next in the row and the nearest in the next row", () => {
  const to = (index) => ["ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"].map((key) => neighbour(BOXES, index, key))
  assert.deepEqual(to(4), [5, 3, 7, 1])
  assert.deepEqual(to(0), [1, -1, 3, -1])
  assert.deepEqual(to(5), [-1, 4, 7, 2])
  assert.deepEqual(to(7), [-1, 6, -1, 4])
  assert.equal(neighbour(BOXES, 0, "a"), undefined)
})

test("they lead the same way when layers go across", () => {
  // By layer, then head; three layers across with two heads below each other.
  const across = [0, 1, 2, 3, 4, 5].map((i) => ({ left: 30 * Math.floor(i / 2), top: 30 * (i % 2), width: 24 }))
  assert.equal(neighbour(across, 0, "ArrowRight"), 2)
  assert.equal(neighbour(across, 0, "ArrowDown"), 1)
  assert.equal(neighbour(across, 3, "ArrowLeft"), 1)
  assert.equal(neighbour(across, 3, "ArrowUp"), 2)
})

test("the telling cell is another token's, not the first, in the later half", () => {
  const rows = [[1, 0, 0, 0], [1, 0, 0, 0], [0.6, 0.3, 0.1, 0], [0.5, 0.1, 0.35, 0.05]]
  const weight = (q, k) => rows[q][k]
  assert.equal(strongest((k) => weight(3, k), 4), 0)
  assert.deepEqual(telling(weight, 4), [3, 2])
  assert.deepEqual(telling(() => 1, 1), [0, 0])
})

test("a word ends at a blank, and its pieces are one", () => {
  assert.deepEqual(words([..."a␣cat.⏎"]), [{ begin: 0, end: 0, text: "a" }, { begin: 2, end: 5, text: "cat." }])
  assert.deepEqual(words(["The", "␣lib", "rary"]), [{ begin: 0, end: 0, text: "The" }, { begin: 1, end: 2, text: "library" }])
})

test("an axis has every token, or whole words, or nothing", () => {
  const text = [..."see␣the␣cat"], read = (cell) => labels(text, cell, 9).map((label) => label.text).join(" ")
  assert.equal(read(9), "s e e ␣ t h e ␣ c a t")
  assert.equal(read(3), "see the cat")
  assert.equal(read(2), "", "of three words one would have no room")
  assert.equal(labels([..."many␣words␣and␣I␣am␣one"], 3, 9).length, 5, "one of six may be missing")
})
