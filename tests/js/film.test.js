// The film: the words below it. What is recorded is tried in a browser (tests/browser/test_film.py).
import assert from "node:assert/strict"
import { test } from "node:test"

import { lines } from "../../ui/assets/film.js"

test("a text is cut into lines between its words", () => {
  const wide = (text) => text.length
  assert.deepEqual(lines("one two three four", 9, wide), ["one two", "three", "four"])
  assert.deepEqual(lines("", 9, wide), [])
  assert.deepEqual(lines("endless-word a", 5, wide), ["endless-word", "a"])
})
