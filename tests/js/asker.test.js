// What a hand chooses and the server answers: one question at a time, and an older answer is not taken for the newest.
import assert from "node:assert/strict"
import { afterEach, beforeEach, mock, test } from "node:test"

import tokens from "../../ui/assets/tokens.js"
import { asker } from "../../ui/assets/shared/play.js"

const LOST_MS = 1500, LOOK_MS = 150 // with a server at rest; between two looks at it

let hand = 0, busy = false, sent = [], lost = 0, one

beforeEach(() => {
  mock.timers.enable({ apis: ["setTimeout"] })
  hand = lost = 0
  busy = false
  sent = []
  one = asker(() => hand, (question) => sent.push(question), () => { lost += 1 }, () => busy)
  one.answered(0)
})

afterEach(() => { mock.timers.reset(); mock.reset() })

function pass(ms) {
  for (let i = 0; i < ms; i += LOOK_MS) mock.timers.tick(LOOK_MS)
}

function choose(...choices) {
  for (hand of choices) one.ask()
}

test("what is wanted by then is asked after the answer, and once", () => {
  choose(1, 2, 3, 4)
  assert.deepEqual([sent, one.waiting()], [[1], true])
  assert.equal(one.answered(1), false) // the hand is further
  assert.equal(one.answered(4), true)
  choose(4)
  assert.deepEqual([sent, one.waiting()], [[1, 4], false])
})

test("while an answer is awaited no other is taken; where none is, the server is right at once", () => {
  choose(1)
  assert.deepEqual([one.answered(0), one.answered(7), one.answered(1)], [false, false, true])
  assert.equal(one.answered(5), true) // by Back, a link, another control
  choose(1)
  assert.deepEqual(sent, [1, 1])
})

test("a question that a server at rest does not answer is given up for what is wanted by then, else for what the server shows", () => {
  choose(1, 2)
  pass(LOST_MS)
  assert.deepEqual([sent, lost], [[1, 2], 0])
  pass(LOST_MS)
  assert.deepEqual([sent, lost, one.waiting()], [[1, 2], 1, false])
  assert.equal(one.answered(0), true)
  pass(9 * LOST_MS)
  assert.equal(lost, 1)
})

test("while the server is at work the answer may still come, however long that takes", () => {
  busy = true
  choose(1, 2)
  pass(9 * LOST_MS)
  busy = false
  pass(LOST_MS / 2)
  assert.deepEqual([sent, one.answered(0), lost], [[1], false, 0])
})

test("of another source nothing is known, so that the same question is asked again", () => {
  choose(1)
  one.forget()
  pass(LOST_MS)
  assert.deepEqual([one.waiting(), lost], [false, 0])
  choose(1)
  assert.deepEqual(sent, [1, 1])
})

/** An element, as far as a row of tokens needs one. */
function element() {
  const heard = {}
  const node = {
    heard, isConnected: true, style: {}, classes: new Set(), append() {}, appendChild: (child) => child, setAttribute() {}, remove() {},
    addEventListener: (name, listener) => { heard[name] = listener },
    getContext: () => ({}),
    classList: { toggle: (name, on) => node.classes[on ? "add" : "delete"](name) },
  }
  return node
}

test("of tokens chosen one after another the last stays chosen, while the answer to the first comes", () => {
  const made = [], asked = []
  globalThis.location = { pathname: "/" }
  globalThis.getComputedStyle = () => ({ colorScheme: "light", getPropertyValue: () => "" })
  globalThis.document = {
    createElement: () => { const node = element(); made.push(node); return node },
    querySelector: (what) => (what.startsWith("a[") ? globalThis.location : { getAttribute: () => "notRunning" }),
  }
  const place = element()
  const answer = (index) => tokens({
    data: { tokens: [..."abcd"], index, label: "", hints: null, values: null, palette: {} },
    parentElement: place, key: "k", setStateValue() {}, setTriggerValue: (_, value) => asked.push(value),
  })
  answer(0)
  const [root, ...cells] = made, chosen = () => cells.findIndex((cell) => cell.classes.has("gf-chosen"))
  const press = () => root.heard.keydown({ key: "ArrowRight", preventDefault() {} })
  press()
  press()
  answer(1)
  assert.equal(chosen(), 2)
  press()
  answer(2)
  answer(3)
  assert.deepEqual([chosen(), asked], [3, [1, 2, 3]])
  answer(1) // Back
  assert.equal(chosen(), 1)
})
