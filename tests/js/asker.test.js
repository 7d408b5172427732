// What a hand chooses and the server answers: one question at a time, and an older answer is not taken for the newest.
import assert from "node:assert/strict"
import { afterEach, beforeEach, mock, test } from "node:test"

import threeways from "../../pages/models/families/threeways.js"
import tokens from "../../ui/assets/tokens.js"
import { asker } from "../../ui/assets/shared/play.js"
import { onPage } from "./fake.mjs"

const OTHER_MS = 1500, LOST_MS = 5000, LOOK_MS = 500 // with a server at rest; between two looks at it

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
  pass(OTHER_MS)
  assert.deepEqual([sent, lost], [[1, 2], 0])
  pass(LOST_MS - LOOK_MS)
  assert.deepEqual([one.waiting(), one.answered(0), lost], [true, false, 0])
  pass(LOOK_MS)
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
  pass(OTHER_MS - LOOK_MS)
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

test("of tokens chosen one after another the last stays chosen, while the answer to the first comes", () => {
  const { made, sent, answer } = onPage(tokens), shown = (index) => answer({ tokens: [..."abcd"], index, label: "", hints: null, values: null })
  shown(0)
  const [root, ...cells] = made, chosen = () => cells.findIndex((cell) => cell.classes.has("gf-chosen"))
  const press = () => root.heard.keydown({ key: "ArrowRight", preventDefault() {} })
  press()
  press()
  shown(1)
  assert.equal(chosen(), 2)
  press()
  shown(2)
  shown(3)
  assert.deepEqual([chosen(), sent], [3, [1, 2, 3]])
  shown(1) // Back
  assert.equal(chosen(), 1)
})

test("of letters hidden one after another none is lost, while the answer to the first comes", () => {
  const { made, sent, answer } = onPage(threeways)
  const column = { family: "encoder", title: "", does: "", cannot: null, rows: [{ name: "", cells: [..."abc"] }], said: [], lines: ["", ""] }
  const shown = (...toggled) => answer({ columns: [column], last: 1, step: 0, name: "step", text: "abc", toggled })
  shown()
  const { heard } = made.find((one) => one.heard.pointerover)
  const click = (at) => heard.click({ type: "click", target: Object.assign(new globalThis.Element(), { closest: () => ({ dataset: { row: 0, at, said: -1 } }) }) })
  click(0)
  click(1)
  shown(0)
  click(2)
  shown(0, 1)
  assert.deepEqual(sent.map(({ places }) => places), [[0], [0, 1], [0, 1, 2]])
})
