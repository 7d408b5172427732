// @ts-check
// The living map without a page: what was sent, made ready; the next token's probabilities; where everything lies.

import { characters } from "../../../ui/assets/shared/dom.js"
import { numbers } from "../../../ui/assets/shared/numbers.js"

/**
 * A text as it was sent (pages/start/home/packing.py), its numbers unpacked.
 * @typedef {any} Picture
 */

/** A finger, that cannot point without pressing. */
export const touched = (event) => event.pointerType === "touch"

/**
 * @param {Record<string, any>} sent
 * @returns {Picture}
 */
export function unpack(sent) {
  const signed = (text) => (text ? numbers(text, Int8Array) : null), floats = (text) => (text ? numbers(text, Float32Array) : null), whole = (text) => (text ? numbers(text, Uint32Array) : null)
  const every = (some, make) => Object.fromEntries(Object.entries(some).map(([name, text]) => [name, make(text)]))
  const { outlook } = sent
  return {
    ...sent,
    lanes: sent.ids.length,
    words: { ...sent.names, ...sent.words },
    stream: signed(sent.stream), middle: signed(sent.middle), attention: signed(sent.attention), feedforward: signed(sent.feedforward),
    sizes: floats(sent.sizes), middle_sizes: floats(sent.middle_sizes), norms: every(sent.norms, signed), norm_sizes: every(sent.norm_sizes, floats),
    entering: signed(sent.entering), entering_sizes: floats(sent.entering_sizes), turned: floats(sent.turned), added: floats(sent.added),
    patterns: sent.patterns === null ? null : numbers(sent.patterns, Uint16Array),
    neurons: whole(sent.neurons), active: floats(sent.active),
    guesses: numbers(sent.guesses, Uint32Array), chances: numbers(sent.chances, Float32Array), last_guesses: whole(sent.last_guesses), last_chances: floats(sent.last_chances),
    outlook: outlook && { ...outlook, tokens: numbers(outlook.tokens, Uint32Array), logits: numbers(outlook.logits, Float32Array), rest: numbers(outlook.rest, Float32Array) },
  }
}

/**
 * The weight, 0 to 1, that a head gives from one lane to another; `key` -1 is all that goes to the earlier tokens.
 * @param {Picture} p
 */
export const weight = (p, layer, head, lane, key) => p.patterns[((layer * p.heads + head) * p.lanes + lane) * (p.lanes + 1) + 1 + key] / 65535

/**
 * What is said after a lane at a depth: [token, probability] of the likeliest, best first; nothing where it is not known yet.
 * @param {Picture} p
 * @returns {[number, number][]}
 */
export function guessed(p, depth, lane) {
  const place = p.known.indexOf(lane), last = place < 0 && depth === p.layers && p.last_guesses
  if (place < 0 && !last) return []
  const [tokens, chances] = last ? [p.last_guesses, p.last_chances] : [p.guesses, p.chances]
  const each = last ? tokens.length / p.lanes : tokens.length / p.known.length / (p.layers + 1), from = (last ? lane : place * (p.layers + 1) + depth) * each
  return Array.from({ length: each }, (_, i) => [tokens[from + i], chances[from + i]])
}

/**
 * The next token's probabilities at a depth, of the likeliest tokens that were sent, after temperature and top-k (0: no cut).
 * Exact: what the others add up to was sent for each of the temperatures. Null where the depth is not known yet.
 * @param {Picture} p
 * @returns {{ tokens: Uint32Array, logits: Float32Array, p: Float64Array, others: number } | null}
 */
export function outlookAt(p, depth, temperature, topK) {
  const row = p.outlook ? p.outlook.depths.indexOf(depth) : -1
  if (row < 0) return null
  const { kept, temperatures } = p.outlook
  const tokens = p.outlook.tokens.subarray(row * kept, (row + 1) * kept), logits = p.outlook.logits.subarray(row * kept, (row + 1) * kept)
  const least = topK ? logits[Math.min(topK, kept) - 1] : -Infinity
  const shares = Float64Array.from(logits, (v) => (v >= least ? Math.exp((v - logits[0]) / temperature) : 0))
  const at = temperatures.findIndex((t) => Math.abs(t - temperature) < 1e-6)
  let others = topK ? 0 : Math.exp(p.outlook.rest[row * temperatures.length + at] - logits[0] / temperature)
  const total = shares.reduce((a, b) => a + b, others)
  for (let i = 0; i < shares.length; i++) shares[i] /= total
  others /= total
  return { tokens, logits, p: shares, others }
}

/**
 * The head of a layer that looks most decidedly from a lane at another one, the first token of the text aside: there heads rest.
 * @param {Picture} p
 */
export function telling(p, layer, lane) {
  let best = 0, most = -1
  for (let head = 0; head < p.heads; head++) {
    for (let key = p.earlier ? 0 : 1; key < lane; key++) {
      const w = weight(p, layer, head, lane, key)
      if (w > most) [best, most] = [head, w]
    }
  }
  return best
}

/**
 * The lane that a head looks at most from another; -1 for the earlier tokens.
 * @param {Picture} p
 */
export function target(p, layer, head, lane) {
  let best = p.earlier ? -1 : 0
  for (let key = best; key < p.lanes; key++) if (weight(p, layer, head, lane, key) > weight(p, layer, head, lane, best)) best = key
  return best
}

/**
 * The block that is open at first: the one after which the guess at the lane that is asked stays what it is at the end.
 * @param {Picture} p
 */
export function decisive(p) {
  const last = p.asked, guess = (depth) => guessed(p, depth, last)[0]?.[0]
  let depth = p.layers
  while (depth > 1 && guess(depth - 1) === guess(p.layers) && guess(depth - 1) !== undefined) depth--
  return depth - 1
}

/**
 * A text with its number, no wider than there is room: a word that does not fit ends in an ellipsis, a number stays whole.
 * @param {string} text
 * @param {string} number
 * @param {number} room
 * @param {(shown: string) => number} width
 */
export function fitted(text, number, room, width) {
  if (width(text + number) <= room) return text + number
  const letters = characters(text)
  while (letters.length > 1 && width(`${letters.join("")}…${number}`) > room) letters.pop()
  return `${letters.join("")}…${number}`
}

/** A template's {names} filled in. @param {string} template @param {Record<string, any>} values */
export const fill = (template, values) => template.replace(/\{(\w+)\}/g, (all, name) => (name in values ? String(values[name]) : all))

const STRIP = 16, SUM = 15, LAST = 20, EDGE = 6, THIN = 10, GAP = 4, LEAST = 40, FIXED = 4 + EDGE + STRIP + SUM + STRIP + EDGE + EDGE + STRIP + SUM + LAST

const NONE = { entering: false, before: false, place: false, between: false, final: false }

/**
 * What a model has beside the stream and what is added to it: a place's vector before the blocks, norms, what tells the place.
 * @param {Picture} p
 */
export const has = (p) => ({ entering: Boolean(p.entering), before: Boolean(p.norms.attention), place: Boolean(p.turned ?? p.added), between: Boolean(p.norms.feedforward), final: Boolean(p.norms.final) })

/**
 * Where everything lies: along the lanes (`s`) and across them (`c`). On a wide page lanes run to the right, on a narrow one
 * down. `strips[depth]` is [from, to] of the stream at that depth; the open block takes the most room.
 * @param {{ along: number, across: number, lanes: number, earlier: boolean, layers: number, focus: number, tall: boolean, there: ReturnType<typeof has> }} of
 */
export function layout({ along, across, lanes, earlier, layers, focus, tall, there }) {
  const labels = tall ? 96 : 132, words = tall ? 104 : 118, top = tall ? 4 : 64, band = tall ? 48 : 0
  const begins = labels + (there.entering ? 2 * (THIN + GAP) : 0), ends = along - words - (there.final ? THIN + 2 * GAP : 0)
  const track = ends - begins, embed = Math.max(12, Math.min(36, track * 0.05)), wanted = tall ? 300 : Math.max(350, 0.42 * track)
  const each = layers > 1 ? Math.max(3, Math.min(Math.max(64, 0.17 * track), (track - embed - wanted) / (layers - 1))) : 0
  const wide = track - embed - each * (layers - 1)
  const rows = lanes + (earlier ? 0.8 : 0), pitch = Math.min(tall ? 46 : Math.max(56, across / 7), (across - top - (tall ? 4 : 8)) / rows)
  const first = top + (tall ? (across - top - pitch * rows) / 2 : 0) + (earlier ? 0.8 * pitch : 0)
  const strips = [[begins, begins + embed]], blocks = []
  let s = begins + embed
  for (let layer = 0; layer < layers; layer++) {
    const end = s + (layer === focus ? wide : each)
    blocks.push([s, end])
    strips.push(layer === focus ? [end - LAST, end] : [s, end])
    s = end
  }
  const [from, to] = blocks[focus]
  /** A thin column, where there is one; of very deep models on a phone there is room for none, and what begins behind it. @returns {[number[] | null, number]} */
  const thin = (is, at) => (is ? [[at, at + THIN], at + THIN + GAP] : [null, at])
  const thins = [there.before, there.place, there.between].filter(Boolean).length
  if (Object.values(there).some(Boolean) && wide - FIXED - band - thins * (THIN + GAP) < LEAST) return layout({ along, across, lanes, earlier, layers, focus, tall, there: NONE })
  const [before, past] = thin(there.before, from + 4 + band), [place, inner] = thin(there.place, past)
  const room = to - inner - (FIXED - 4) - (there.between ? THIN + GAP : 0), active = Math.min(0.4 * room, 190), arcs = [inner, inner + room - active]
  const attention = [arcs[1] + EDGE, arcs[1] + EDGE + STRIP], middle = [attention[1] + SUM, attention[1] + SUM + STRIP]
  const [second, next] = thin(there.between, middle[1] + GAP)
  const neurons = second ? [next, next + active + (EDGE - GAP)] : [middle[1] + EDGE, middle[1] + EDGE + active], feedforward = [neurons[1] + EDGE, neurons[1] + EDGE + STRIP]
  return {
    along, across, labels, words: [along - words, along], top, band, pitch, thick: Math.max(3, Math.min(60, pitch * 0.72)), strips, blocks, focus, from, to,
    entering: there.entering ? [[labels, labels + THIN], [labels + THIN + GAP, labels + 2 * THIN + GAP]] : [], before, place, between: second, final: there.final ? [ends + GAP, ends + GAP + THIN] : null,
    arcs, attention, middle, neurons, feedforward, lanes, earlier,
    /** The middle of a lane; of -1, the earlier tokens. */
    lane: (i) => (i < 0 ? first - 0.45 * pitch : first + (i + 0.5) * pitch),
    /** The lane at a place, or -1 beside all of them. */
    at: (c) => { const i = Math.floor((c - first) / pitch); return i >= 0 && i < lanes ? i : -1 },
  }
}

/** Between two layouts, `part` of the way. @returns {ReturnType<typeof layout>} */
export function between(a, b, part) {
  if (part >= 1 || a.strips.length !== b.strips.length || a.lanes !== b.lanes) return b
  const mix = (x, y) => (typeof x === "number" && typeof y === "number" ? x + (y - x) * part : Array.isArray(x) && Array.isArray(y) ? y.map((v, i) => mix(x[i], v)) : y)
  return /** @type {any} */ (Object.fromEntries(Object.keys(b).map((key) => [key, key === "focus" ? b.focus : mix(a[key], b[key])])))
}

const inside = (range, s) => Boolean(range) && s >= range[0] && s <= range[1]

const each = (p) => (p.neurons ? p.neurons.length / p.layers / p.lanes : 0)

/**
 * Everything of a lane that can be pointed at, in the order in which it is met: [what it is, its range along the lane].
 * @param {Picture} p
 * @param {ReturnType<typeof layout>} g
 * @param {number} lane
 * @returns {[any, number[]][]}
 */
export function stations(p, g, lane) {
  const { focus } = g, wide = (g.neurons[1] - g.neurons[0]) / Math.max(1, each(p))
  /** @type {[any, number[] | null][]} */
  const met = [[{ kind: "token" }, [0, g.labels - 1]], [{ kind: "embed" }, g.entering[0]], [{ kind: "pos_embed" }, g.entering[1]], [{ kind: "embedding", depth: 0 }, g.strips[0]]]
  for (let layer = 0; layer < p.layers; layer++) {
    if (layer === focus) {
      met.push([{ kind: "norm", of: "attention" }, g.before], [{ kind: "place" }, g.place], [{ kind: "head" }, p.patterns && g.arcs], [{ kind: "attn_out" }, p.attention && g.attention], [{ kind: "middle" }, p.middle && g.middle], [{ kind: "norm", of: "feedforward" }, g.between])
      for (let rank = 0; rank < each(p); rank++) met.push([{ kind: "neuron", rank }, [g.neurons[0] + rank * wide, g.neurons[0] + (rank + 1) * wide]])
      met.push([{ kind: "ffn_out" }, p.feedforward && g.feedforward])
    }
    met.push([{ kind: "stream", depth: layer + 1, layer }, g.strips[layer + 1]])
  }
  met.push([{ kind: "norm_final" }, g.final], [{ kind: "guess" }, g.words])
  return /** @type {[any, number[]][]} */ (met.filter(([, range]) => range).map(([spot, range]) => [{ layer: focus, ...spot, lane }, range]))
}

/**
 * What lies at a place: { kind, lane, depth, layer, ... }, or null.
 * @param {Picture} p
 * @param {ReturnType<typeof layout>} g
 */
export function hit(p, g, s, c) {
  const lane = g.at(c)
  if (g.earlier && lane < 0 && s < g.labels && c > g.top - 4 && c < g.lane(0)) return { kind: "earlier" }
  const block = g.blocks.findIndex((range) => inside(range, s))
  if (lane < 0) return block >= 0 ? { kind: "block", layer: block } : null
  const found = stations(p, g, lane).find(([, range]) => inside(range, s))
  return found ? found[0] : block >= 0 ? { kind: "block", layer: block, lane } : null
}

/**
 * The box around what is pointed at: [from, to] along and [from, to] across; null for what is not on the canvas.
 * @param {Picture} p
 * @param {ReturnType<typeof layout>} g
 * @param {any} spot
 * @returns {[number, number, number, number] | null}
 */
export function boxOf(p, g, spot) {
  if (spot.kind === "earlier") return g.earlier ? [0, g.labels - 1, g.lane(-1) - 0.35 * g.pitch, g.lane(-1) + 0.35 * g.pitch] : null
  if (spot.kind === "block") return [g.blocks[spot.layer][0], g.blocks[spot.layer][1], 2, g.across - 2]
  if (!(spot.lane >= 0)) return null
  const found = stations(p, g, spot.lane).find(([one]) => same(one, spot)), half = g.thick / 2
  return found ? [found[1][0], found[1][1], g.lane(spot.lane) - half, g.lane(spot.lane) + half] : null
}

/** Whether two are of one kind, wherever they lie across. */
export const same = (a, b) => a.kind === b.kind && ["rank", "depth", "of"].every((key) => a[key] === b[key])
