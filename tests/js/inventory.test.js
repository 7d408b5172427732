// A test in two forms: what a browser keeps of it, which screen comes when, and what it came to.
import assert from "node:assert/strict"
import { test } from "node:test"

import { answered, chosen, firstOpen, flagged, fresh, gained, marks, next, points, read, stayed, written } from "../../ui/assets/inventory_state.js"

const SIZES = [[3, 2], [3, 2]]
const form = (right, beliefs) => beliefs.map((names, at) => ({ id: `q${at}`, title: `Q${at}`, text: "?", right: right[at], options: names.map((belief) => ({ text: "a", belief })) }))
const FORMS = [form([0, 1], [["", "lookup", "copy"], ["words", ""]]), form([2, 0], [["copy", "lookup", ""], ["", "words"]])]

/** Both forms answered, right or not. */
function taken(first, second) {
  let state = fresh(SIZES)
  first.forEach((option, at) => { if (option !== null) state = chosen(state, 0, at, option) })
  second.forEach((option, at) => { if (option !== null) state = chosen(state, 1, at, option) })
  return state
}

test("what was answered comes back as it was kept, and of several tests each its own", () => {
  const one = { ...taken([1, 0], [2, null]), begun: [true, true], done: [true, false] }, two = taken([0, null], [null, null])
  const text = written(written("", "alone/1", one), "room", two)
  assert.deepEqual(read(text, "alone/1", SIZES), one)
  assert.deepEqual(read(text, "room", SIZES), two)
  assert.deepEqual(read(text, "alone/2", SIZES), fresh(SIZES))
})

test("a browser keeps the newest five tests", () => {
  let text = ""
  for (let i = 0; i < 9; i++) text = written(text, `alone/${i + 1}`, taken([1, 1], [null, null]))
  text = written(text, "alone/6", taken([2, 1], [null, null]))
  assert.deepEqual(Object.keys(JSON.parse(text)), ["alone/5", "alone/7", "alone/8", "alone/9", "alone/6"])
})

test("what makes no sense is left out", () => {
  const odd = ["", "{", "null", "[]", "7", '"a"', '{"a": 1}', '{"a": null}', '{"a": {"answers": 7}}', '{"a": {"answers": [[9, -1], ["0", 1.5]], "begun": "yes", "done": [1, "true"], "ended": "x"}}', '{"__proto__": {"answers": [[1]]}}']
  for (const text of odd) assert.deepEqual(read(text, "a", SIZES), fresh(SIZES), text)
  assert.deepEqual(read("{}", "__proto__", SIZES), fresh(SIZES))
  assert.deepEqual(read('{"a": {"answers": [[1, 1, 1, 1]]}}', "a", SIZES).answers, [[1, 1], [null, null]])
  assert.equal(Object.keys(JSON.parse(written("[1]", "a", fresh(SIZES)))).length, 1)
})

test("an option chosen again is taken back, and nothing else changes", () => {
  const once = chosen(fresh(SIZES), 0, 1, 0)
  assert.deepEqual(once.answers, [[null, 0], [null, null]])
  assert.equal(answered(once.answers[0]), 1)
  assert.deepEqual(chosen(once, 0, 1, 1).answers[0], [null, 1])
  assert.deepEqual(chosen(once, 0, 1, 0).answers, fresh(SIZES).answers)
  assert.deepEqual([once.answers[0], [0, null], [0, 1]].map(firstOpen), [0, 1, 0])
})

test("alone, no answer is shown before the second form is done, or somebody ends it", () => {
  let state = fresh(SIZES)
  assert.deepEqual(next(state), { screen: "start", form: 0 })
  state = { ...state, begun: flagged(state.begun, 0) }
  assert.deepEqual(next(state), { screen: "form", form: 0 })
  state = { ...state, done: flagged(state.done, 0) }
  assert.deepEqual(next(state), { screen: "between", form: 0 })
  assert.equal(next({ ...state, ended: true }).screen, "results")
  state = { ...state, begun: flagged(state.begun, 1) }
  assert.deepEqual(next(state), { screen: "form", form: 1 })
  assert.equal(next({ ...state, done: flagged(state.done, 1) }).screen, "results")
})

test("in a room the lecturer leads, and no answer is shown before the second form is closed", () => {
  const state = { ...fresh(SIZES), ended: true, done: [true, false] }
  assert.equal(next(state, { form: null, open: false }).screen, "wait")
  assert.deepEqual(next(state, { form: 0, open: true }), { screen: "done", form: 0 })
  assert.deepEqual(next(state, { form: 0, open: false }), { screen: "wait", form: 0 })
  assert.deepEqual(next(state, { form: 1, open: true }), { screen: "form", form: 1 })
  assert.deepEqual(next(state, { form: 1, open: false }), { screen: "results", form: 1 })
})

test("points and the gain are those of the key", () => {
  const state = taken([1, 1], [2, null])
  assert.deepEqual(marks(FORMS[0], state.answers[0]), ["wrong", "right"])
  assert.deepEqual(marks(FORMS[1], state.answers[1]), ["right", ""])
  assert.deepEqual([points(FORMS[0], state.answers[0]), points(FORMS[1], state.answers[1])], [1, 1])
  const keyless = FORMS[0].map((question) => ({ ...question, right: undefined }))
  assert.deepEqual(marks(keyless, state.answers[0]), ["", ""])
  assert.equal(gained(6, 10, 14), 0.5)
  assert.ok(Number.isNaN(gained(14, 14, 14)))
})

test("what stayed is what both forms show, of a single form what that shows", () => {
  const both = stayed(FORMS, taken([2, 0], [1, 1]))
  assert.deepEqual(both.map(({ belief, twice }) => [belief, twice]), [["words", true]])
  assert.deepEqual(stayed(FORMS, taken([2, 0], [2, 0])), [])
  assert.deepEqual(stayed(FORMS, taken([1, 1], [null, null])).map(({ belief }) => belief), ["lookup"])
})
