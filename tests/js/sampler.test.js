// The stages of the browser against the engine's (stages.json, which tests/engine/test_js_values.py holds to it).
import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { test } from "node:test"

import sampler from "../../ui/assets/sampler.js"
import { distance, draw, expectedDistance, OFF, ranked, softmax, stages } from "../../ui/assets/sampler_stages.js"
import { onPage } from "./fake.mjs"

const fixed = JSON.parse(readFileSync(new URL("./stages.json", import.meta.url), "utf8"))
const near = (a, b, by = 2e-6) => assert.ok(Math.abs(a - b) <= by, `${a} is not ${b}`)

for (const { settings, stages: wanted, drawn } of fixed.cases) {
  test(`stages with ${JSON.stringify(settings)}`, () => {
    const made = stages(Float32Array.from(fixed.logits), settings, new Set(fixed.previous))
    assert.deepEqual(made.map((s) => [s.name, s.kept, [...s.removed].sort()]), wanted.map((s) => [s.name, s.kept, s.removed]))
    made.forEach((stage, i) => {
      near(stage.mass, wanted[i].mass)
      near(stage.entropy, wanted[i].entropy)
      near(stage.choices, Math.exp(wanted[i].entropy), 2e-5)
      stage.p.forEach((p, token) => near(p, wanted[i].p[token]))
    })
    assert.deepEqual(fixed.numbers.map((u) => draw(made.at(-1).p, u)), drawn)
  })
}

test("what is off changes nothing, and the penalty can come last", () => {
  const off = { ...OFF, penalty_last: true }
  const made = stages(fixed.logits, off, new Set([0]))
  assert.deepEqual(made.map((s) => s.name), ["logits", "temperature", "top_k", "top_p", "min_p", "repetition_penalty"])
  for (const stage of made) assert.deepEqual([...stage.p], [...made[0].p])
})

test("softmax sums to one where exp alone would overflow", () => {
  const p = softmax([1000, 1000, -Infinity])
  assert.deepEqual([...p], [0.5, 0.5, 0])
})

test("of equals the lower id comes first", () => assert.deepEqual([...ranked(Float64Array.of(1, 3, 3, 2))], [1, 2, 3, 0]))

test("a number next to 1 draws no token of probability 0", () => {
  assert.equal(draw(Float64Array.of(0.5, 0.5, 0), 1 - 2 ** -53), 1)
  assert.equal(draw(Float64Array.of(0, 1), 0), 1)
})

test("total variation distance", () => {
  assert.equal(distance(Float64Array.of(0.5, 0.5), [10, 0], 10), 0.5)
  near(expectedDistance(Float64Array.of(0.5, 0.5)), Math.sqrt(0.5 / Math.PI))
})

test("after Back the settings are the address's, whatever older answers come, until a slider moves", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] })
  const { made, sent, heard, answer } = onPage(sampler), packed = (numbers) => Buffer.from(numbers.buffer).toString("base64")
  const shown = (temperature) => answer({
    logits: packed(Float32Array.of(1, 2)), labels: ["a", "b"], seen: [], numbers: packed(Float64Array.of(0.5)),
    settings: { ...OFF, temperature, seed: 0 }, mode: "stages", rows: 2,
  })
  shown(0.8)
  const slider = made.find((one) => one["aria-label"] === "Temperature")
  const move = (to) => { slider.value = to; slider.oninput() }
  move("1.5")
  heard.popstate()
  t.mock.timers.tick(1000)
  assert.deepEqual(sent, [], "what was moved before Back is not sent after it")
  shown(1.5)
  shown(0.3)
  assert.equal(slider.value, "0.3")
  move("1.2")
  shown(0.3)
  assert.equal(slider.value, "1.2")
})
