// Which changes of the address the browser's Back stops at, in a browser that is no more than its history.
import assert from "node:assert/strict"
import { beforeEach, test } from "node:test"

import { amended, install, sceneOf, visit, watched } from "../../ui/assets/shared/history.js"

const AT = "http://a/attention?attention_view=mask"
const heard = { document: new EventTarget(), window: new EventTarget() }
let entries = [AT], at = 0
const act = (name = "click") => heard.document.dispatchEvent(new Event(name))
const back = () => { at--; heard.window.dispatchEvent(new Event("popstate")) }
/** What Streamlit does with an address that the server sends. */
const sent = (address) => globalThis.history.pushState({}, "", address)

class History {
  pushState(_state, _unused, url) { entries = [...entries.slice(0, at + 1), String(url)]; at++ }
  replaceState(_state, _unused, url) { entries[at] = String(url) }
}

Object.assign(globalThis, {
  History, history: new History(), document: heard.document, PopStateEvent: Event,
  addEventListener: (...message) => heard.window.addEventListener(...message), dispatchEvent: (event) => heard.window.dispatchEvent(event),
})
Object.defineProperty(globalThis, "location", { get: () => ({ href: entries[at] }) })
install()

beforeEach(() => { heard.window.dispatchEvent(new Event("popstate")); entries = [AT]; at = 0 })

test("a step is one entry, however often the server writes its address", () => {
  act()
  sent("http://a/attention?embed_view=lookup&scene=3")
  sent("http://a/embeddings?embed_view=lookup&scene=3")
  sent("http://a/embeddings?embed_view=lookup&scene=3&model=x")
  assert.deepEqual(entries, [AT, "http://a/embeddings?embed_view=lookup&scene=3&model=x"])
  act("keydown")
  sent("http://a/tokens")
  assert.equal(entries.length, 3)
})

test("what moves by itself adds none, on a page that Back has led to neither", () => {
  act()
  sent("http://a/positions?rope_at=1")
  sent("http://a/positions?rope_at=2")
  assert.deepEqual(entries, [AT, "http://a/positions?rope_at=2"])
  act("keydown") // the one that was Back
  back()
  sent(`${AT}&rope_at=3`)
  assert.deepEqual(entries, [`${AT}&rope_at=3`, "http://a/positions?rope_at=2"], "and the way forward is still there")
})

test("a scene is gone to as Back would go there: one entry, then drawn", () => {
  let drawn = 0
  const ended = new AbortController()
  watched(() => { drawn++ }, ended.signal)
  visit("http://a/tokens?scene=2")
  ended.abort()
  sent("http://a/tokens?scene=2&model=x")
  assert.deepEqual(entries, [AT, "http://a/tokens?scene=2&model=x"])
  assert.equal(drawn, 2, "as it is written, and as Streamlit is told")
})

test("what the server does not know of stays in every address it writes", () => {
  let staged = true
  amended((address) => { if (staged) address.searchParams.set("stage", "1") })
  sent("http://a/tokens")
  assert.deepEqual(entries, ["http://a/tokens?stage=1"])
  staged = false
  sent("http://a/tokens")
  assert.deepEqual(entries, ["http://a/tokens"])
})

test("a scene is a page and a place in a course", () => {
  assert.equal(sceneOf(AT), sceneOf(`${AT}&layer=2`))
  assert.notEqual(sceneOf(AT), sceneOf(`${AT}&scene=2`))
  assert.notEqual(sceneOf(AT), sceneOf("http://a/train"))
})

test("an address of a scene that is left already, which the server sends late, is not written", () => {
  visit("http://a/residual?course=c&scene=7")
  visit("http://a/sampling?course=c&scene=8")
  sent("http://a/sampling?course=c&scene=7&model=x")
  assert.deepEqual(entries, [AT, "http://a/residual?course=c&scene=7", "http://a/sampling?course=c&scene=8"])
  sent("http://a/sampling?course=c&scene=8&model=y")
  assert.equal(entries.at(-1), "http://a/sampling?course=c&scene=8&model=y")
  act() // on the button that begins a course
  sent("http://a/?course=c&scene=1")
  assert.equal(entries.at(-1), "http://a/?course=c&scene=1")
})
