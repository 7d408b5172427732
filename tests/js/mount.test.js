// How a component lives, with a place and an element that stand in for the page's.
import assert from "node:assert/strict"
import { test } from "node:test"

import { component } from "../../ui/assets/shared/mount.js"

function staged() {
  const said = []
  const life = {
    create: (place, key) => { said.push(`create ${key}`); return { root: { remove: () => said.push("gone") } } },
    update: (self, data, fresh) => { said.push(`update ${data} ${fresh}`); self.send("seen", data) },
    remove: () => said.push("remove"),
  }
  const place = { isConnected: true }, sent = []
  const draw = component(life)
  const tell = (data, to = "first") => draw({ data, parentElement: place, key: "k", setStateValue: (_, value) => sent.push(`${to} ${value}`), setTriggerValue: () => {} })
  return { said, place, sent, tell }
}

test("it is made once and told of every message", () => {
  const { said, sent, tell } = staged()
  tell("a")
  tell("b", "second")
  assert.deepEqual(said, ["create k", "update a true", "update b false"])
  assert.deepEqual(sent, ["first a", "second b"]) // through what the newest message brought
})

test("without data there is nothing", () => {
  const { said, tell } = staged()
  assert.equal(tell(undefined), undefined)
  assert.deepEqual(said, [])
})

test("it ends when its place has gone, and begins anew in a new one", () => {
  const { said, place, tell } = staged()
  const end = tell("a")
  place.isConnected = false
  end()
  assert.deepEqual(said.slice(2), ["remove", "gone"])
  tell("b")
  assert.deepEqual(said.slice(4), ["create k", "update b true"])
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
