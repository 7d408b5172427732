// Panels side by side, one below the other on a phone.

import assert from "node:assert/strict"
import { test } from "node:test"

import { panels, slim, stack } from "../../ui/assets/plot_narrow.js"

const note = (x, text) => ({ xref: "paper", yref: "paper", x, y: 1.01, text })
const row = () => ({
  xaxis: { domain: [0, 0.46], anchor: "y" }, yaxis: { title: "weight" },
  xaxis2: { domain: [0.54, 1], anchor: "y2" }, yaxis2: { showticklabels: false },
  annotations: [note(0, "left"), note(0.54, "right"), { x: 3, y: 0.2, text: "in the data" }],
})

test("where there is room, a row stays a row", () => {
  const layout = row()
  assert.equal(stack(layout, 600), 1)
  assert.deepEqual(layout, row())
})

test("on a phone the left panel is above the right one, each with its title", () => {
  const layout = row()
  assert.equal(stack(layout, 360), 1.6)
  assert.deepEqual([layout.xaxis.domain, layout.xaxis2.domain], [[0, 1], [0, 1]])
  assert.equal(layout.yaxis.domain[1], 1)
  assert.equal(layout.yaxis2.domain[0], 0)
  assert.ok(layout.yaxis.domain[0] - layout.yaxis2.domain[1] > 0.15, "room for ticks and a title")
  assert.ok(!("showticklabels" in layout.yaxis2), "its labels were the left one's")
  const [left, right, data] = layout.annotations
  assert.deepEqual([left.x, right.x], [0, 0])
  assert.ok(Math.abs(right.y - (layout.yaxis2.domain[1] + 0.01)) < 1e-9 && left.y === 1.01)
  assert.deepEqual(data, { x: 3, y: 0.2, text: "in the data" })
})

test("what is no plain row of equal panels is left alone", () => {
  const one = { xaxis: {}, yaxis: {} }
  const uneven = { ...row(), xaxis: { domain: [0, 0.2] } }
  const shared = { ...row(), xaxis2: { domain: [0.54, 1], anchor: "y" } }
  const grid = { ...row(), yaxis: { domain: [0.5, 1] } }
  const two = { ...row(), yaxis3: { overlaying: "y", side: "right" } }
  const between = { ...row(), annotations: [{ ...note(0.5, "between"), y: 0.5 }] }
  const line = { ...row(), shapes: [{ xref: "paper", x0: 0, x1: 1 }] }
  for (const layout of [one, uneven, shared, grid, two, between, line]) {
    assert.deepEqual(panels(layout), [])
    assert.equal(stack(layout, 360), 1)
  }
})

test("on a phone names leave the chart's side for a legend, and lines have short names", () => {
  const figure = () => ({
    margin: { r: 160 }, showlegend: false, meta: { narrow: { margin: { r: 10 }, showlegend: true } },
    annotations: [
      { name: "wide", text: "2.17 two layers" }, { name: "narrow:bigram 2.48", text: "the letter before (bigram): 2.48" }, { text: "as it is" },
    ],
  })
  const wide = figure()
  assert.equal(slim(wide, 800), 1)
  assert.deepEqual(wide, figure())
  const phone = figure()
  slim(phone, 360)
  assert.deepEqual([phone.margin, phone.showlegend], [{ r: 10 }, true])
  assert.deepEqual(phone.annotations.map((note) => note.text), ["bigram 2.48", "as it is"])
  const plain = { margin: { r: 160 }, annotations: [{ name: "wide", text: "stays" }] }
  assert.equal(slim(plain, 360), 1)
  assert.equal(plain.annotations.length, 1)
  assert.equal(slim({ meta: { narrow: {}, taller: 1.5 } }, 360), 1.5)
})
