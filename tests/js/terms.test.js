// Where a term's card lies, and which terms are found.
import assert from "node:assert/strict"
import { test } from "node:test"

import { cardPlace, matching } from "../../ui/assets/terms_state.js"

const view = { width: 400, height: 300 }

test("the card lies below its term, or above where there is no room, and always in the window", () => {
  const card = { width: 200, height: 80 }
  assert.deepEqual(cardPlace({ left: 50, top: 20, bottom: 40 }, card, view), { left: 50, top: 46 })
  assert.deepEqual(cardPlace({ left: 50, top: 240, bottom: 260 }, card, view), { left: 50, top: 154 })
  assert.deepEqual(cardPlace({ left: 390, top: 20, bottom: 40 }, card, view), { left: 192, top: 46 })
  assert.deepEqual(cardPlace({ left: -30, top: 20, bottom: 250 }, { width: 200, height: 290 }, view), { left: 8, top: 8 })
})

test("a word is looked for in the names first, then in the sentences", () => {
  const terms = [{ title: "head", text: "One attention." }, { title: "attention", text: "Tokens collect." }, { title: "RoPE", also: "RoPE, rotary", text: "Rotation." }]
  const names = (wanted) => matching(terms, wanted).map((term) => term.title)
  assert.deepEqual(names(""), ["head", "attention", "RoPE"])
  assert.deepEqual(names(" ATT"), ["attention", "head"])
  assert.deepEqual(names("rope"), ["RoPE"])
  assert.deepEqual(names("rotary"), ["RoPE"])
  assert.deepEqual(names("zebra"), [])
})
