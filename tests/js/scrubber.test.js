// The scrubber: where it stands among the snapshots.
import assert from "node:assert/strict"
import { test } from "node:test"

import { after, marked, NEWEST, place, points, wanted, words } from "../../ui/assets/scrubber_state.js"
import { due } from "../../ui/assets/shared/play.js"

const STEPS = [0, 10, 20, 30]

test("a step's place is the first snapshot at or after it, else the last", () => {
  assert.deepEqual([0, 10, 11, 30, 99, NEWEST].map((step) => place(STEPS, step)), [0, 1, 2, 3, 3, 3])
})

test("the right end follows the newest", () => assert.deepEqual([0, 2, 3].map((i) => wanted(STEPS, i)), [0, 20, NEWEST]))

test("a message moves the slider only where no hand is on it", () => {
  const now = { steps: [0, 20, 40, 60], shown: 0 }
  assert.equal(after({ steps: STEPS, index: 2 }, now, false), 0)
  assert.equal(after({ steps: STEPS, index: 2 }, now, true), 1) // stays at step 20
  assert.equal(after({ steps: STEPS, index: 1 }, now, true), 1) // step 10 was thinned out
  assert.equal(after({ steps: STEPS, index: 3 }, now, true), 3) // at the end it follows
  assert.equal(after({ steps: [], index: 0 }, { steps: STEPS, shown: NEWEST }, false), 3)
})

test("the words name step, newest and loss", () => {
  const data = { steps: [0, 1000], losses: [null, 2.345], run: "a" }
  assert.equal(words(data, 0), "step 0")
  assert.equal(words(data, 1), "step 1,000 (newest) · training loss 2.35")
})

test("what happened at a step is said there, and nowhere else", () => {
  const data = { steps: [0, 10, 20], losses: [null, 2.5, 2], run: "a", marks: [{ step: 10, short: "1.0", words: "1.0 copies" }] }
  assert.deepEqual([0, 1, 2].map((i) => words(data, i)), ["step 0", "step 10 · 1.0 copies", "step 20 (newest) · training loss 2.00"])
})

test("marks stand at their steps, with what their head does where there is room before the next, else its name, else none", () => {
  const mark = (step) => ({ step, short: "head 0.1", words: "head 0.1 copies" })
  const named = (wide) => marked([0, 10, 20, 30, 40], [mark(10), mark(20), mark(35)], wide).map(({ step, at, name }) => [step, at, name])
  assert.deepEqual(named(500), [[10, 25, "head 0.1 copies"], [20, 50, "head 0.1 copies"]]) // of 35 there is no snapshot
  assert.deepEqual(named(320), [[10, 25, "head 0.1"], [20, 50, "head 0.1 copies"]]) // 80 pixels for the first, 160 for the second
  assert.deepEqual(named(120), [[10, 25, ""], [20, 50, "head 0.1"]])
  assert.deepEqual(marked([0, 10], [mark(10)], 900).map(({ at, name }) => [at, name]), [[100, ""]]) // the end of the slider
})

test("the loss fills the picture, and what is missing is left out", () => {
  assert.deepEqual(points([3, null, 1]), [[0, 8], [1000, 92]])
  assert.deepEqual(points([2]), [[0, 92]])
  assert.deepEqual(points([null]), [])
})

test("steps that are due, and no catching up", () => {
  assert.deepEqual(due(99, 10), { steps: 0, used: 0 })
  assert.deepEqual(due(250, 10), { steps: 2, used: 200 })
  assert.deepEqual(due(60_000, 10), { steps: 20, used: 60_000 })
})
