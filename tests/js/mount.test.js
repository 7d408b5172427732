// How a component lives, with a place and an element that stand in for the page's.
import assert from "node:assert/strict"
import { test } from "node:test"

import { alone, running } from "../../ui/assets/shared/dom.js"
import { component, handOut, inTurn, messages } from "../../ui/assets/shared/mount.js"

// The server rests, and the entry of the menu that is lit leads to `lit`.
let lit = "/tokens"
globalThis.location = { pathname: "/tokens" }
globalThis.document = { querySelector: (what) => (what.startsWith("a[") ? lit && { pathname: lit } : { getAttribute: () => "notRunning" }) }

function staged() {
  const said = [], root = Object.assign(new EventTarget(), { dataset: {} })
  const life = {
    create: (place, key, signal) => {
      said.push(`create ${key}`)
      signal.addEventListener("abort", () => said.push("ended"))
      return { root: Object.assign(root, { remove: () => said.push("gone") }) }
    },
    update: (self, data, fresh) => { said.push(`update ${data} ${fresh}`); self.send("seen", data) },
    remove: () => said.push("remove"),
  }
  const place = { isConnected: true }, sent = []
  const draw = component(life)
  const tell = (data, to = "first") => draw({ data, parentElement: place, key: "k", setStateValue: (_, value) => sent.push(`${to} ${value}`), setTriggerValue: () => {} })
  return { said, place, sent, tell, root }
}

test("it is made once and told of every message", () => {
  const { said, sent, tell } = staged()
  tell("a")
  tell("b", "second")
  assert.deepEqual(said, ["create k", "update a true", "update b false"])
  assert.deepEqual(sent, ["first a", "second b"]) // through what the newest message brought
})

test("in a saved file nobody is waited for: what a component has to say is said at once", () => {
  const { sent, tell } = staged(), document = globalThis.document
  globalThis.document = { querySelector: () => ({ getAttribute: () => "saved" }) }
  assert.equal(alone(), true)
  assert.equal(running(), true) // no answer comes that would undo what was chosen
  tell("a")
  globalThis.document = document
  assert.equal(alone(), false)
  assert.deepEqual(sent, ["first a"])
})

test("while another page is asked for, the server counts as at work, though it has not begun; but not for ever", (t) => {
  assert.equal(running(), false)
  lit = "/positions" // a click on the menu lights its entry before the address changes
  assert.equal(running(), true)
  lit = "/tokens/"
  assert.equal(running(), false)
  globalThis.location.pathname = "/nowhere" // no entry is ever lit for it
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() })
  assert.equal(running(), true)
  t.mock.timers.tick(60_000)
  assert.equal(running(), false)
  lit = "" // the menu is not there
  assert.equal(running(), false)
  lit = globalThis.location.pathname = "/tokens"
})

test("what a component was sent is held for a saved file; one that is told only what is new says all of it", () => {
  const { tell, root } = staged(), all = []
  tell("a")
  assert.equal(messages.get(root).data, "a")
  const piecewise = component({ create: () => ({ root, whole: () => all.join("") }), update: (_, data) => { all.push(data) } })
  for (const data of ["b", "c"]) piecewise({ data, parentElement: { isConnected: true, data }, key: "p", setStateValue() {}, setTriggerValue() {} })
  assert.equal(messages.get(root).data, "bc")
})

test("without data there is nothing", () => {
  const { said, tell } = staged()
  assert.equal(tell(undefined), undefined)
  assert.deepEqual(said, [])
})

test("what comes past Streamlit goes to the component of that key, if it is on the page", () => {
  const { said, tell, root } = staged(), asked = []
  tell("a")
  const document = globalThis.document
  globalThis.CSS = { escape: (key) => key }
  globalThis.document = { querySelector: (what) => (what.startsWith(".st") ? (asked.push(what), what.startsWith(".st-key-here ") ? root : null) : document.querySelector(what)) }
  handOut({ here: { heads: 2 }, gone: "b" })
  globalThis.document = document
  assert.deepEqual(asked, [".st-key-here [data-gf-part]", ".st-key-gone [data-gf-part]"])
  assert.equal(root.dataset.gfPart, "")
  assert.deepEqual(said, ["create k", "update a true", "update [object Object] false"])
})

test("it ends when its place has gone, and begins anew in a new one", () => {
  const { said, place, tell } = staged()
  const end = tell("a")
  place.isConnected = false
  end()
  assert.deepEqual(said.slice(2), ["ended", "remove", "gone"])
  tell("b")
  assert.deepEqual(said.slice(5), ["create k", "update b true"])
})

test("what a newer message has overtaken does not end it", () => {
  const { said, place, tell } = staged()
  const first = tell("a"), second = tell("b")
  first()
  second() // its place is still there: the next message is on its way
  assert.equal(said.includes("remove"), false)
  place.isConnected = false
  first()
  assert.equal(said.includes("remove"), false)
  second()
  assert.equal(said.at(-1), "gone")
})

test("what was said first is sent first, though both waited", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] })
  const sent = []
  let busy = true
  const send = inTurn({ isConnected: true }, (_, value) => sent.push(value), () => busy)
  send("chosen", 1)
  t.mock.timers.tick(5)
  send("chosen", 2)
  t.mock.timers.tick(6)
  busy = false
  for (let ms = 0; ms < 30; ms++) t.mock.timers.tick(1)
  assert.deepEqual(sent, [1, 2])
})

test("what it says waits for what is under way, and is dropped with its place", async () => {
  const place = { isConnected: true }, sent = []
  let busy = true
  const send = inTurn(place, (name, value) => sent.push([name, value]), () => busy)
  send("step", 1)
  assert.deepEqual(sent, [])
  busy = false
  await new Promise((resolve) => setTimeout(resolve, 40))
  assert.deepEqual(sent, [["step", 1]])
  busy = true
  send("step", 2)
  place.isConnected = false // another page was asked for, and has come
  busy = false
  await new Promise((resolve) => setTimeout(resolve, 40))
  assert.deepEqual(sent, [["step", 1]])
})
