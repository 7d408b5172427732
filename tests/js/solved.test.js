// Which exercises a browser has solved: what it kept is read, added to and counted, whatever stands there.
import assert from "node:assert/strict"
import { test } from "node:test"

import { counted, noted, read, written } from "../../pages/learn/exercises/solved_state.js"

const groups = [
  { id: "attention", title: "Attention", tasks: [{ id: "score", title: "A score" }, { id: "row", title: "A row" }] },
  { id: "cache", title: "Cache", tasks: [{ id: "size", title: "Bytes" }] },
]

test("what is solved is added once a seed, and comes back as it was kept", () => {
  const one = noted(read("", groups), { id: "score", seed: 3 })
  const two = noted(noted(one, { id: "score", seed: 4 }), { id: "score", seed: 3 })
  assert.deepEqual([...two], [["score", [3, 4]]])
  assert.deepEqual([...read(written(two), groups)], [...two])
  assert.equal(noted(two, null), two)
  assert.equal(noted(two, { id: "score", seed: 4 }), two)
})

test("the count is of exercises, not of seeds", () => {
  const kept = read('{"score": [1, 2, 3], "size": [1]}', groups)
  assert.equal(counted(kept, groups), "2 of 3 solved")
  assert.equal(counted(new Map(), groups), "0 of 3 solved")
})

test("what makes no sense is left out", () => {
  for (const text of ["", "{", "null", "[]", "7", '{"gone": [1]}', '{"score": "x"}', '{"score": [1.5, "a", null]}', '{"__proto__": [1]}']) {
    assert.equal(read(text, groups).size, 0, text)
  }
  assert.equal(read(JSON.stringify({ score: [...Array(900).keys()] }), groups).get("score").length, 50)
})
