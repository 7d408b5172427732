// Where an arrow leads in the results, and which view is the one on the screen.
import assert from "node:assert/strict"
import { test } from "node:test"

import { isHere, next } from "../../ui/assets/search_state.js"

test("arrows go round the ends, and no other key leads anywhere", () => {
  assert.deepEqual(["ArrowDown", "ArrowUp"].map((key) => next(key, 0, 3)), [1, 2])
  assert.equal(next("ArrowDown", 2, 3), 0)
  for (const key of ["Home", "End", "ArrowRight", "a"]) assert.equal(next(key, 1, 3), undefined)
  assert.equal(next("ArrowDown", 0, 0), undefined)
})

test("a view is on the screen where the address names it, or names none and it is the page's first", () => {
  const root = new URL("https://example.org/app/"), heads = { address: "attention?attention_view=heads", first: "heads" }
  const here = (row, shown) => isHere(row, root, `https://example.org/app/${shown}`)
  assert.ok(here(heads, "attention?attention_view=heads&model=a"))
  assert.ok(here(heads, "attention?model=a"))
  assert.ok(!here(heads, "attention?attention_view=mask"))
  assert.ok(!here({ ...heads, first: "mask" }, "attention"))
  assert.ok(!here(heads, "positions"))
  assert.ok(here({ address: "?home_view=living", first: "living" }, ""))
  assert.ok(here({ address: "train", first: "train" }, "train?preset=fast"))
})
