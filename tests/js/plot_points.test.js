// Points of a figure that are moved: where a hand or a key may put them, and how they are written.

import assert from "node:assert/strict"
import { test } from "node:test"

import { movable, moved, pixel, read, snapped, valueAt, written } from "../../ui/assets/plot_points.js"

const MOVES = { step: 0.1, far: 0.5, reach: 2, name: "Example", hint: "" }

test("a point stands on a multiple of the step, within reach", () => {
  assert.deepEqual([0.3000001, -0.04, 7, -7].map((value) => snapped(value, MOVES)), [0.3, 0, 2, -2])
  assert.ok(Object.is(snapped(-0.04, MOVES), 0), "minus zero would be written otherwise than the server does")
})

test("arrow keys move a point by a step, with Shift by far; others leave it", () => {
  const key = (key, shiftKey = false) => moved([1, -1.9], { key, shiftKey }, MOVES)
  assert.deepEqual([key("ArrowLeft"), key("ArrowUp")], [[0.9, -1.9], [1, -1.8]])
  assert.deepEqual([key("ArrowRight", true), key("ArrowDown", true)], [[1.5, -1.9], [1, -2]])
  assert.equal(key("a"), undefined)
})

test("pixels and values are one another's inverse, on an axis turned round too", () => {
  for (const range of [[-2, 2], [2, -2]]) {
    const axis = { range, _offset: 40, _length: 200 }
    assert.deepEqual([pixel(axis, range[0]), pixel(axis, 0), pixel(axis, range[1])], [40, 140, 240])
    for (const value of [-1.5, 0, 2]) assert.equal(valueAt(axis, pixel(axis, value)), value)
  }
})

test("points are written as the server reads them", () => {
  assert.equal(written([[-1.5, 1], [0.1, 0]]), "-1.5 1, 0.1 0")
  assert.deepEqual(read(["-1.5 1", "0.1 0"]), [[-1.5, 1], [0.1, 0]])
})

test("points move where a server draws what follows, and in no saved file", () => {
  const trace = { meta: { moves: MOVES } }, message = { figure: { data: [{}, trace] } }, state = (now) => { globalThis.document = { querySelector: () => ({ getAttribute: () => now }) } }
  state("notRunning")
  assert.equal(movable(message), trace)
  state("saved")
  assert.ok(!movable(message))
})
