// How long a follower waits before its next question, and that it does not forget that the page has to be drawn again.
import assert from "node:assert/strict"
import { test } from "node:test"

import follow, { next } from "../../ui/assets/follow.js"

test("a server that does not answer is asked more and more seldom, and not more seldom than that", () => {
  assert.deepEqual([0, 1, 2, 9].map((failed) => next(0.5, failed)), [500, 1000, 2000, 8000])
})

const element = () => ({
  style: {}, isConnected: true, append: () => {}, appendChild: (child) => child, setAttribute: () => {}, firstChild: { style: {} },
})

test("the page is asked for again where its state is another and no answer came, though nothing else has changed", async (t) => {
  globalThis.location = { pathname: "/train" }
  globalThis.document = { createElement: element, querySelector: (what) => (what.startsWith("a[") ? globalThis.location : { getAttribute: () => "notRunning" }) }
  globalThis.window = { requestIdleCallback: (act) => act() }
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] })
  const answers = [{ status: 200, ok: true, json: async () => ({ state: "ended", version: "2", share: 1, text: "" }) }], asked = []
  globalThis.fetch = async (address) => {
    asked.push(new URL(address).searchParams.get("since"))
    return answers.shift() ?? { status: 204, ok: true }
  }
  const requests = []
  follow({
    data: { token: "t", state: "running", version: "1", every: 0.5, share: 0, text: "" },
    parentElement: element(),
    key: "k",
    setStateValue: () => {},
    setTriggerValue: (name) => requests.push(name),
  })
  for (let second = 0; second < 20; second++) {
    t.mock.timers.tick(1000)
    for (let i = 0; i < 9; i++) await Promise.resolve()
  }
  assert.deepEqual(asked.slice(0, 3), ["1", "2", "2"])
  assert.ok(requests.length >= 2, `asked for the page ${requests.length} times`)
})
