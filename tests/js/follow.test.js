// How long a follower waits before its next question.
import assert from "node:assert/strict"
import { test } from "node:test"

import { next } from "../../ui/assets/follow.js"

test("a server that does not answer is asked more and more seldom, and not more seldom than that", () => {
  assert.deepEqual([0, 1, 2, 9].map((failed) => next(0.5, failed)), [500, 1000, 2000, 8000])
})
