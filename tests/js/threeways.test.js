// One text in three families: what stands at a step, whose reading is shown, and how dark.
import assert from "node:assert/strict"
import { test } from "node:test"

import { cellsAt, marked, shades, turned, wordsOf } from "../../pages/models/families/threeways_state.js"

const said = (at, step, symbol, reads = [[]], row = 0) => ({ row, at, step, symbol, told: symbol, wrong: false, reads })
const encoder = { family: "encoder", rows: [{ name: "", cells: ["a", "b", "c"] }], said: [said(0, 1, "x"), said(2, 1, "z")] }
const decoder = { family: "decoder", rows: [{ name: "", cells: ["a", "n", "d"] }], said: [said(1, 1, "n"), said(2, 2, "d")] }

test("blanks are filled all at once, and letters stand one by one", () => {
  const told = (column, step) => cellsAt(column, step)[0].map((cell) => `${cell.text} ${cell.kind} ${cell.said}`)
  assert.deepEqual(told(encoder, 0), ["? hidden -1", "b given -1", "? hidden -1"])
  assert.deepEqual(told(encoder, 1), ["x written 0", "b given -1", "z written 1"])
  assert.deepEqual(told(decoder, 1), ["a given -1", "n written 0", "· later -1"])
  assert.deepEqual(told(decoder, 2), ["a given -1", "n written 0", "d written 1"])
})

test("the newest is looked at, of several at once the first, and what is pointed at where it stands", () => {
  assert.deepEqual([0, 1, 2, 9].map((step) => marked(decoder, step, -1)), [-1, 0, 1, 1])
  assert.deepEqual([marked(encoder, 0, -1), marked(encoder, 5, -1), marked(encoder, 5, 1)], [-1, 0, 1])
  assert.deepEqual([marked(decoder, 1, 1), marked(decoder, 2, 0)], [0, 0]) // the second is not written yet at step 1
  assert.equal(marked({ ...decoder, said: [] }, 3, 0), -1)
})

test("a shade is a share of the largest weight in any row; what could not be read has none", () => {
  const one = said(1, 1, "w", [[0.1, 0.4], [0.2]], 1)
  assert.deepEqual(shades(one, 0, 2), [0.25, 1])
  assert.deepEqual(shades(one, 1, 3), [0.5, NaN, NaN])
  assert.deepEqual(shades(one, 2, 1), [NaN])
})

test("a letter that is clicked twice is as it was", () => {
  assert.deepEqual(turned([2, 7], 4), [2, 4, 7])
  assert.deepEqual(turned([2, 4, 7], 4), [2, 7])
  assert.deepEqual(turned([2], 10), [2, 10])
})

test("a line breaks between words: the blank after a word belongs to it", () => {
  assert.deepEqual(wordsOf([..."my␣old⏎dog"]), [3, 4, 3])
  assert.deepEqual(wordsOf([..."a␣␣b␣"]), [2, 1, 2])
  assert.deepEqual([wordsOf([]), wordsOf(["?"])], [[0], [1]])
})
