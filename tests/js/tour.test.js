import assert from "node:assert/strict"
import { test } from "node:test"
import { leads } from "../../ui/assets/tour_state.js"

const free = { writes: false, busy: false }, moves = { writes: false, busy: true }, writes = { writes: true, busy: true }

test("arrows and a clicker go on and back", () => {
  assert.equal(leads("ArrowRight", 2, 9, free), 3)
  assert.equal(leads("PageDown", 2, 9, free), 3)
  assert.equal(leads("ArrowLeft", 2, 9, free), 1)
  assert.equal(leads("PageUp", 2, 9, free), 1)
})

test("the course has a first and a last scene", () => {
  assert.equal(leads("PageUp", 0, 9, free), undefined)
  assert.equal(leads("PageDown", 8, 9, free), undefined)
})

test("a slider keeps its arrows, and who writes keeps all", () => {
  assert.equal(leads("ArrowRight", 2, 9, moves), undefined)
  assert.equal(leads("PageDown", 2, 9, moves), 3)
  assert.equal(leads("PageDown", 2, 9, writes), undefined)
  assert.equal(leads("p", 2, 9, free), undefined)
})
