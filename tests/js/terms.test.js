// Where a term's card lies.
import assert from "node:assert/strict"
import { test } from "node:test"

import { cardPlace } from "../../ui/assets/terms.js"

const view = { width: 400, height: 300 }

test("the card lies below its term, or above where there is no room, and always in the window", () => {
  const card = { width: 200, height: 80 }
  assert.deepEqual(cardPlace({ left: 50, top: 20, bottom: 40 }, card, view), { left: 50, top: 46 })
  assert.deepEqual(cardPlace({ left: 50, top: 240, bottom: 260 }, card, view), { left: 50, top: 154 })
  assert.deepEqual(cardPlace({ left: 390, top: 20, bottom: 40 }, card, view), { left: 192, top: 46 })
  assert.deepEqual(cardPlace({ left: -30, top: 20, bottom: 250 }, { width: 200, height: 290 }, view), { left: 8, top: 8 })
})
