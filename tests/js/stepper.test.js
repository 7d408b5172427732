// A player over steps: it waits while the screen is frozen, ends or begins anew at the end, and follows the address.
import assert from "node:assert/strict"
import { afterEach, beforeEach, mock, test } from "node:test"

import { createStepper } from "../../ui/assets/shared/stepper.js"

let time = 0, next = null, frozen = false, led = null

beforeEach(() => {
  mock.timers.enable({ apis: ["setTimeout"] }) // the address is written later
  Object.assign(globalThis, {
    location: { href: "http://here/page", pathname: "/page" },
    addEventListener: (_, listener) => { led = listener },
    requestAnimationFrame: (tick) => { next = tick; return 1 },
    cancelAnimationFrame: () => { next = null },
    document: {
      documentElement: { classList: { contains: () => frozen } },
      createElement: () => ({
        nodes: [], dataset: {}, style: { setProperty() {} }, setAttribute() {},
        append(...nodes) { this.nodes.push(...nodes) }, appendChild(node) { this.nodes.push(node); return node },
      }),
    },
  })
  mock.method(performance, "now", () => time)
})

afterEach(() => { mock.timers.reset(); mock.reset() })

const buttonOf = (self, does) => self.bar.nodes.find(({ dataset }) => dataset.do === does)
const pass = (ms) => { time += ms; next?.(time) }

/** A stepper at `step` of 0 to `last`, a step every 100 ms; `drawn` are the steps that it asked to draw. */
function made(step, last, parts = {}) {
  const drawn = [], ended = new AbortController()
  const self = createStepper({ unit: "step", label: "Step", play: "Play", ms: 100, moved: () => drawn.push(self.at), ...parts }, ended.signal)
  self.update({ name: "at", step, last })
  return { self, drawn, ended, toggle: buttonOf(self, "play") }
}

test("it plays to the end and stops there; from the end it begins anew", () => {
  const { self, drawn, toggle } = made(1, 3)
  self.start()
  for (let i = 0; i < 5; i++) pass(100)
  assert.deepEqual(drawn, [2, 3])
  assert.equal(toggle.textContent, "▶")
  toggle.onclick()
  assert.deepEqual([drawn.at(-1), toggle.textContent], [0, "❚❚"])
})

test("one that loops goes on with the first step", () => {
  const { self, drawn } = made(2, 3, { loops: true })
  self.start()
  for (let i = 0; i < 3; i++) pass(100)
  assert.deepEqual(drawn, [3, 0, 1])
})

test("it waits while the lecturer has frozen the screen", () => {
  const { self, drawn } = made(0, 9)
  self.start()
  frozen = true
  for (let i = 0; i < 5; i++) pass(100)
  assert.deepEqual(drawn, [])
  frozen = false
  pass(100)
  assert.deepEqual(drawn, [1])
})

test("it shows the step of an address to which Back or a link led, also after the server has drawn that", () => {
  const { self, drawn } = made(2, 9)
  globalThis.location.href = "http://here/page?at=5"
  led()
  globalThis.location.href = "http://here/page"
  led()
  assert.deepEqual(drawn, [5, 2]) // an address without a step means the one at first
  self.update({ name: "at", step: 7, last: 9 })
  assert.equal(self.at, 7)
})

test("an answer from before Back is not taken for the address's", () => {
  const { self } = made(2, 9)
  for (const [address, older, shown, newer] of [["?at=5", 7, 5, 5], ["", 7, 7, 0]]) {
    globalThis.location.href = `http://here/page${address}`
    led()
    self.update({ name: "at", step: older, last: 9 })
    assert.equal(self.at, shown)
    self.update({ name: "at", step: newer, last: 9 })
    assert.equal(self.at, newer)
  }
})

for (const [words, step, loops, shows] of [["at the end", 3, false, 6], ["before the end", 2, false, 2], ["at the end of one that loops", 3, true, 3]])
  test(`with a longer text who was ${words} is at step ${shows}`, () => {
    const { self } = made(step, 3, { loops })
    self.update({ name: "at", step: 0, last: 6 })
    assert.equal(self.at, shows)
  })

test("without a name in the address it keeps its step to itself; buttons lead to the ends, where those that lead on are off", () => {
  const { self, drawn } = made(1, 3, { ends: true })
  self.update({ step: 0, last: 3 })
  led()
  assert.deepEqual([self.at, drawn], [1, []])
  const later = mock.method(globalThis, "setTimeout") // writes the address
  for (const does of ["last", "first", "next"]) buttonOf(self, does).onclick()
  assert.deepEqual([drawn, later.mock.callCount()], [[3, 0, 1], 0])
  const off = () => ["first", "back", "next", "last"].map((does) => buttonOf(self, does).disabled)
  self.paint("")
  assert.deepEqual(off(), [false, false, false, false])
  buttonOf(self, "last").onclick()
  self.paint("")
  assert.deepEqual(off(), [false, false, true, true])
})

test("several steps that are due at once are made at once, and not beyond the end; then it says that it rests", () => {
  const rests = []
  const { self, drawn } = made(0, 3, { rested: () => rests.push(self.at) })
  self.start()
  pass(250)
  pass(250)
  pass(250)
  assert.deepEqual([drawn, rests], [[2, 3], [3]])
})

test("it ends with its component: it plays no further, and writes no address", () => {
  const { self, drawn, ended } = made(0, 9)
  const written = mock.method(globalThis, "setTimeout"), ends = mock.method(globalThis, "clearTimeout")
  self.start()
  pass(100)
  ended.abort()
  pass(100)
  assert.deepEqual(drawn, [1])
  assert.equal(ends.mock.calls.at(-1).arguments[0], written.mock.calls.at(-1).result)
})
