// The living map's arithmetic against the engine's (livemap.json, which tests/pages/start/test_home_packing.py holds to it).
import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { test } from "node:test"

import { card } from "../../pages/start/home/livemap_card.js"
import { between, boxOf, decisive, fill, fitted, guessed, has, hit, layout, outlookAt, stations, target, telling, unpack, weight } from "../../pages/start/home/livemap_state.js"

const fixed = JSON.parse(readFileSync(new URL("./livemap.json", import.meta.url), "utf8")), p = unpack(fixed.picture)
const near = (a, b, by) => assert.ok(Math.abs(a - b) <= by, `${a} is not ${b}`)

for (const { depth, temperature, topK, tokens, p: wanted, others } of fixed.outlooks) {
  test(`the next token at depth ${depth}, temperature ${temperature}, top-k ${topK}`, () => {
    const found = outlookAt(p, depth, temperature, topK)
    assert.deepEqual([...found.tokens.slice(0, 14)], tokens)
    wanted.forEach((share, i) => near(found.p[i], share, 2e-5))
    near(found.others, others, 2e-5)
    near(found.p.reduce((a, b) => a + b, found.others), 1, 1e-9)
  })
}

test("a depth that was not sent is not made up", () => assert.equal(outlookAt({ ...p, outlook: { ...p.outlook, depths: [2] } }, 1, 1, 0), null))

test("weights are those of the patterns, and what goes to earlier tokens is one number", () => {
  for (const [layer, head, lane, key, wanted] of fixed.weights) near(weight(p, layer, head, lane, key), wanted, 6e-5)
  const [layer, head, lane, wanted] = fixed.earlier
  near(weight(p, layer, head, lane, -1), wanted, 6e-5)
})

test("what is said at a depth after a lane", () => {
  for (const [depth, lane, token, share] of fixed.guesses) {
    assert.equal(guessed(p, depth, lane)[0][0], token)
    near(guessed(p, depth, lane)[0][1], share, 1e-5)
  }
  assert.deepEqual(guessed({ ...p, known: [15] }, 0, 3), [])
})

test("the strongest of a row, the most telling head and the decisive block", () => {
  const small = { lanes: 3, earlier: 0, heads: 2, layers: 3, known: [2], asked: 2, patterns: new Uint16Array(3 * 2 * 3 * 4) }
  const put = (layer, head, lane, key, w) => { small.patterns[((layer * 2 + head) * 3 + lane) * 4 + 1 + key] = w }
  put(1, 0, 2, 0, 250)
  put(1, 1, 2, 1, 90)
  put(1, 1, 2, 2, 100)
  assert.equal(target(small, 1, 0, 2), 0)
  assert.equal(target(small, 1, 1, 2), 2)
  assert.equal(telling(small, 1, 2), 1) // the first token and the token itself do not count
  const guesses = Uint32Array.of(9, 5, 7, 7), chances = Float32Array.of(1, 1, 1, 1)
  assert.equal(decisive({ ...small, guesses, chances }), 1) // after block 1 the guess is 7, as at the end
  assert.equal(decisive({ ...small, guesses: Uint32Array.of(7, 7, 7, 7), chances }), 0)
})

for (const tall of [false, true]) {
  test(`a ${tall ? "narrow" : "wide"} layout keeps its order and everything can be pointed at`, () => {
    for (const [layers, lanes] of [[1, 1], [2, 16], [30, 5], [80, 16]]) for (const focus of new Set([0, layers - 1])) {
      const g = layout({ along: tall ? 640 : 780, across: tall ? 366 : 326, lanes, earlier: lanes === 16, layers, focus, tall, there: has(p) })
      assert.equal(g.strips.length, layers + 1)
      const ends = g.blocks.flat()
      assert.ok(ends.every((s, i) => i === 0 || s >= ends[i - 1] - 1e-6))
      if (g.final) assert.ok(ends.at(-1) < g.final[0] && g.final[1] < g.words[0] && g.words[0] - ends.at(-1) < 24)
      else near(ends.at(-1), g.words[0], 1e-6)
      const inner = [g.from, ...(g.before ?? []), ...g.arcs, ...g.attention, ...g.middle, ...(g.between ?? []), ...g.neurons, ...g.feedforward, ...g.strips[focus + 1]]
      assert.ok(inner.every((s, i) => i === 0 || s >= inner[i - 1] - 1e-6), `${inner}`)
      for (let lane = 0; lane < lanes; lane++) {
        assert.equal(g.at(g.lane(lane)), lane)
        assert.ok(g.lane(lane) > g.top && g.lane(lane) + g.pitch / 2 <= g.across)
      }
      assert.equal(hit({ ...p, layers }, g, g.words[0] + 5, g.lane(0)).kind, "guess")
      assert.equal(hit({ ...p, layers }, g, g.labels - 5, g.lane(0)).kind, "token")
      assert.equal(hit({ ...p, layers }, g, g.arcs[0] + 1, g.lane(0)).kind, "head")
      // Everything of a lane is found at its middle, and its box is there.
      for (const [spot, [from, to]] of stations({ ...p, layers }, g, 0)) {
        assert.deepEqual(hit({ ...p, layers }, g, (from + to) / 2, g.lane(0)), spot)
        const box = boxOf({ ...p, layers }, g, spot)
        assert.deepEqual(box.slice(0, 2), [from, to])
        assert.ok(box[2] < g.lane(0) && box[3] > g.lane(0))
      }
      if (layers > 1) assert.equal(hit({ ...p, layers }, g, g.blocks[focus ? 0 : 1][0] + 1, g.lane(0)).layer, focus ? 0 : 1)
    }
  })
}

test("between two layouts is half of the way, and another text has none", () => {
  const of = (focus, lanes) => layout({ along: 780, across: 326, lanes, earlier: false, layers: 4, focus, tall: false, there: has(p) })
  const [a, b] = [of(0, 5), of(3, 5)]
  near(between(a, b, 0.5).from, (a.from + b.from) / 2, 1e-9)
  assert.equal(between(a, b, 1), b)
  const other = of(3, 6)
  assert.equal(between(a, other, 0.5), other)
})

test("a card says what is there with its numbers", () => {
  const say = new Proxy({}, { get: (_, kind) => [`${String(kind)} {word} {head} {block}`, "{query}>{key} {weight} {neuron} {value} {guess} {chance} {others} {id} {place} {pooled}"] })
  const self = { p, say, panel: { earlier: "{count} earlier" }, model: { vocab: 300, d_model: 16, d_ff: 24 }, parts: { attention: { parameters: "5" }, sum_feedforward: {}, block: {} }, head: 2, lane: 15, focus: 1, depth: 2, temperature: 1, topK: 0 }
  const head = card(self, { kind: "head", layer: 1, lane: 15 }), key = target(p, 1, 2, 15)
  assert.equal(head.name, "blocks.1.pattern")
  assert.equal(head.shape, "(head, query, key) = (4, 20, 20)")
  assert.ok(head.text.startsWith(`w${p.ids[15]}>${key < 0 ? "4 earlier" : `w${p.ids[key]}`} `))
  assert.deepEqual(head.ask, { part: "attention", token: 19, layer: 1, name: "blocks.1.pattern", head: 2, row: true })
  const neuron = card(self, { kind: "neuron", layer: 0, lane: 3, rank: 1 })
  assert.equal(neuron.ask.neuron, p.neurons[(0 * 16 + 3) * 6 + 1])
  const stream = card(self, { kind: "stream", layer: 1, depth: 2, lane: 7 })
  assert.ok(stream.text.includes(` w${guessed(p, 2, 7)[0][0]} `))
  assert.equal(card(self, { kind: "token", lane: 0 }).ask.token, 4)
  // Where it stops is said by name: before the first block there is the embedding, and no block -1.
  const where = (depth) => card({ ...self, say: { guess: ["stopped after {where}", ""] }, panel: { block: "block {block}", embedding: "embedding" }, depth }, { kind: "guess", lane: 7 }).title
  assert.deepEqual([where(0), where(2)], ["stopped after embedding", "stopped after block 1"])
})

test("a template keeps what it does not know", () => assert.equal(fill("{a} {b}", { a: 1 }), "1 {b}"))

test("where there is no room a word is cut, never its number", () => {
  const width = (shown) => shown.length
  assert.equal(fitted("␣Paris", " 77%", 10, width), "␣Paris 77%")
  assert.equal(fitted("␣Paris", " 77%", 9, width), "␣Par… 77%")
  assert.equal(fitted("␣Paris", "", 4, width), "␣Pa…")
})
