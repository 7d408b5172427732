// What the components share, as far as it needs no page.
import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { test } from "node:test"

import { channels, level, luminance, ramp, shade } from "../../ui/assets/shared/colours.js"
import { cell, csv } from "../../ui/assets/shared/csv.js"
import { begins } from "../../pages/start/train/samples.js"
import { beginning, characters } from "../../ui/assets/shared/dom.js"
import { pointerMoved, target } from "../../ui/assets/shared/keys.js"
import { bytes, counted, flop, memory, minus, numbers, percent, raised, scientific, whole } from "../../ui/assets/shared/numbers.js"
import { freePlace } from "../../ui/assets/shared/save.js"
import { decode, ended, known, pathOf, shown } from "../../pages/output/generation/writer_state.js"

const PALETTE = Object.fromEntries([0, 1, 2, 3, 4, 5, 6].map((i) => [`seq${i}`, [`#0000${i}0`, `#00${i}000`]]))

test("cells of a table are quoted where they must be", () => {
  assert.deepEqual(['a,"b', "two\nlines", "a\rb", "plain", 0, false].map(cell), ['"a,""b"', '"two\nlines"', '"a\rb"', "plain", "0", "false"])
  assert.deepEqual([null, undefined, NaN].map(cell), ["", "", ""])
})

test("rows make a table", () => {
  assert.equal(csv([["x", "y,z"], [1, "a"], [2, null]]), 'x,"y,z"\n1,a\n2,\n')
  assert.equal(csv("a text stays"), "a text stays")
})

test("a colour's channels and how light it is", () => {
  assert.deepEqual(channels("#fb0010"), [251, 0, 16])
  assert.deepEqual(channels("rgba(1, 2, 3, 0.5)"), [1, 2, 3])
  assert.ok(Math.abs(luminance([255, 255, 255]) - 1) < 1e-12)
  assert.ok(luminance(channels("#14181f")) < 0.5 && luminance(channels("#fbfcfe")) > 0.5)
})

test("a token's shade keeps its text readable on both sides", () => {
  assert.deepEqual([0, 0.08, 0.09, 0.5, 1, 2, -1, NaN].map(level), [0, 0, 1, 3, 6, 6, 0, 0])
  assert.deepEqual(shade(PALETTE, 0, 0), { background: "#000000", color: "#18202c" })
  assert.deepEqual(shade(PALETTE, 1, 0), { background: "#000060", color: "#f4f7fb" })
  assert.deepEqual(shade(PALETTE, 0, 1), { background: "#000000", color: "#f4f7fb" })
  assert.deepEqual(shade(PALETTE, 1, 1), { background: "#006000", color: "#10151d" })
})

test("a ramp goes through every colour of the scale", () => {
  const colours = ramp(PALETTE, 0, 13)
  assert.equal(colours.length, 13)
  for (let i = 0; i <= 6; i++) assert.deepEqual(colours[2 * i], [0, 0, 16 * i])
  assert.deepEqual(colours[1], [0, 0, 8])
})

test("characters are whole, as a reader counts them", () => {
  const family = "👩‍👩‍👧", accent = "e\u0301", text = `${family}${accent}🇩🇪a`
  assert.deepEqual(characters(text), [family, accent, "🇩🇪", "a"])
  assert.deepEqual([0, 1, 2, 3, 4, 9].map((n) => beginning(text, n)), ["", family, family + accent, `${family}${accent}🇩🇪`, text, text])
  for (let n = 0; n < 200; n++) {
    const cut = begins({ step: 0, prompt: "a".repeat(n % 9), text: `${family} ${accent}🦜 שלום `.repeat(n) })
    assert.ok(cut.isWellFormed() && !cut.endsWith("\u200d") && characters(cut).length <= 90)
    assert.ok(n < 20 || characters(cut).length > 87, cut) // but for blanks at its ends
  }
})

test("keys lead along one axis or both", () => {
  const keys = ["ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp", "Home", "End", "a"]
  assert.deepEqual(keys.map((key) => target(key, 3, 9)), [4, 2, 4, 2, 0, 9, undefined])
  assert.deepEqual(keys.map((key) => target(key, 3, 9, "x")), [4, 2, undefined, undefined, 0, 9, undefined])
  assert.deepEqual(keys.map((key) => target(key, 3, 9, "y")), [undefined, undefined, 4, 2, 0, 9, undefined])
})

test("only a pointer that moves counts", () => {
  const self = {}
  const moves = [[1, 1], [1, 1], [1, 2]].map(([screenX, screenY]) => pointerMoved(self, { screenX, screenY }))
  assert.deepEqual(moves, [true, false, true])
})

test("numbers as they are sent", () => {
  assert.deepEqual([...bytes("AP8K")], [0, 255, 10])
  assert.deepEqual([...numbers(Buffer.from(Float32Array.of(1.5, -2).buffer).toString("base64"), Float32Array)], [1.5, -2])
})

test("numbers as they are said", () => {
  assert.deepEqual([counted(1, "token"), counted(2000, "token"), counted(2, "axis", "axes")], ["1 token", "2,000 tokens", "2 axes"])
  assert.equal(raised(-120), "⁻¹²⁰")
  for (const [name, cases] of Object.entries(JSON.parse(readFileSync(new URL("../numbers.json", import.meta.url), "utf8")))) {
    assert.deepEqual(cases.map(([value]) => ({ flop, memory, minus, percent, scientific, whole })[name](value)), cases.map(([, written]) => written))
  }
})

test("the writer's tree", () => {
  const nodes = [{ parent: null, token: 5 }, { parent: 0, token: 6 }, { parent: 0, token: 7 }]
  const self = { nodes, leaf: 2, path: [0, 2], length: 9, ends: { 2: [1, "stop"] }, words: { 5: ["␣é", "20c3a9"], 6: ["x", "78"] } }
  assert.deepEqual([pathOf(self, 2), pathOf(self, 1), pathOf(self, null)], [[0, 2], [0, 1], []])
  assert.deepEqual([known(self), ended(self)], [1, "stop"])
  assert.deepEqual([known({ ...self, ends: {} }), ended({ ...self, ends: {} }), ended({ ...self, ends: {}, length: 0 })], [2, "", "length"])
  assert.equal(decode(self, [5, 6, 9]), " éx")
  assert.deepEqual([shown(self, 5), shown(self, 9)], ["␣é", "9"])
})

test("save buttons stay where nothing is below them, and step aside from a text to the nearest free place", () => {
  const frame = { left: 0, right: 400, top: 0, bottom: 300 }, own = { left: 300, right: 400, top: 0, bottom: 24 }
  const legend = { left: 250, right: 390, top: 4, bottom: 20 }, title = { left: 0, right: 400, top: 0, bottom: 20 }
  assert.deepEqual(freePlace(own, frame, []), [0, 0])
  assert.deepEqual(freePlace(own, frame, [legend]), [0, 21]) // below it, which is nearer than 151 to the left
  assert.deepEqual(freePlace(own, frame, [{ ...legend, left: 380 }]), [-21, 0])
  assert.deepEqual(freePlace(own, frame, [title]), [0, 21])
  assert.deepEqual(freePlace(own, frame, [frame]), [0, 0]) // no place is free
})
