// @ts-check
// RoPE, seen: every pair of q and k as two arrows that turn with their positions. Nothing is asked of the server.
// See pages/input/positions/arrows.py.

import { around, rangeInput, resize, vector, within } from "../../../ui/assets/shared/dom.js"
import { target } from "../../../ui/assets/shared/keys.js"
import { component } from "../../../ui/assets/shared/mount.js"
import { minus, scientific } from "../../../ui/assets/shared/numbers.js"
import { frames, playButton, still } from "../../../ui/assets/shared/play.js"
import { saveTools } from "../../../ui/assets/shared/save.js"
import { paint } from "../../../ui/assets/shared/theme.js"

/**
 * What is sent.
 * @typedef {object} Data
 * @property {number[]} q (d_rotary,), as it is at position 0
 * @property {number[]} k (d_rotary,)
 * @property {number[]} theta (pair,) radians per position
 * @property {number} d_head
 * @property {number} rest the product of the dimensions that do not rotate
 * @property {number} most the last position
 * @property {number[]} at positions of query and key, and the pair, at first
 * @property {string} home what `at` is for
 * @property {[string, string]} labels
 * @property {import("../../../ui/assets/shared/colours.js").Palette} colours
 * @property {string} note
 * @property {string} alt
 */

const STEP_MS = 650, TWEEN_MS = 420 // between two positions while it plays; how long an arrow takes to get there
const RADIUS = 44

function create(parent) {
  const root = within(parent, "div", "gf-rope")
  const bar = within(root, "div", "gf-rope-bar")
  const button = within(bar, "button", "gf-rope-play", "", { "data-unsaved": "" })
  const sliders = within(bar, "div", "gf-rope-sliders")
  const position = (kind, words) => {
    const label = within(sliders, "label", `gf-rope-${kind}`)
    return { words: within(label, "span", "gf-rope-name"), input: label.appendChild(rangeInput(words)) }
  }
  const query = position("q", "Position of the query"), key = position("k", "Position of the key")
  const both = within(bar, "label", "gf-rope-both", "", { "data-unsaved": "" })
  const check = within(both, "input", "", "", { type: "checkbox" })
  within(both, "span", "", "move both together")
  const said = within(root, "div", "gf-rope-said", "", { "aria-live": "off" })
  const stage = within(root, "div", "gf-rope-stage")
  const left = within(stage, "div", "gf-rope-left")
  const big = dial(left, "gf-rope-big")
  const about = within(left, "details", "gf-rope-about") // its arithmetic is a click away
  within(about, "summary")
  const right = within(stage, "div", "gf-rope-right")
  const note = within(right, "div", "gf-rope-note")
  const grid = within(right, "div", "gf-rope-grid", "", { role: "radiogroup", "aria-label": "Pairs of dimensions: choose the one to enlarge" })
  const self = {
    root, button, query, key, check, said, big, about, note, grid, dials: [], at: [0, 0], from: [0, 0], shown: [0, 0], pair: 0, home: null,
    /** @type {any} */ player: null, frame: 0, started: 0, send: null, data: null, longest: 0,
  }
  query.input.oninput = () => { stop(self); move(self, 0, Number(query.input.value)) }
  key.input.oninput = () => { stop(self); move(self, 1, Number(key.input.value)) }
  query.input.onchange = key.input.onchange = () => tell(self)
  button.onclick = () => (self.player ? stop(self, true) : play(self))
  grid.addEventListener("click", (event) => choose(self, self.dials.findIndex((d) => d.root === around(event, ".gf-rope-small"))))
  grid.addEventListener("keydown", (event) => {
    const next = target(event.key, self.pair, self.dials.length - 1)
    if (next === undefined) return
    event.preventDefault()
    choose(self, next)
    self.dials[self.pair].root.focus()
  })
  left.prepend(saveTools(root, () => "rope-pairs", () => table(self)))
  name(self)
  return self
}

function dial(parent, kind) {
  const root = within(parent, kind === "gf-rope-big" ? "div" : "button", kind)
  const svg = vector("svg", { viewBox: "-50 -50 100 100", "aria-hidden": "true" }, root)
  vector("circle", { r: RADIUS, class: "gf-rope-ring" }, svg)
  vector("line", { x1: -RADIUS, x2: RADIUS, y1: 0, y2: 0, class: "gf-rope-axis" }, svg)
  vector("line", { y1: -RADIUS, y2: RADIUS, x1: 0, x2: 0, class: "gf-rope-axis" }, svg)
  const wedge = vector("path", { class: "gf-rope-wedge" }, svg)
  const arrows = ["k", "q"].map((which) => {
    const group = vector("g", { class: `gf-rope-arrow-${which}` }, svg)
    return { group, line: vector("line", { x1: 0, y1: 0, y2: 0 }, group), head: vector("path", {}, group) }
  })
  const value = within(root, "span", "gf-rope-value gf-text")
  return { root, wedge, k: arrows[0], q: arrows[1], value }
}

function name(self) {
  playButton(self.button, !!self.player, "Play: one position after another")
}

function play(self) {
  self.player = frames(() => 1000 / STEP_MS, () => advance(self))
  name(self)
  const most = self.data.most
  if (self.check.checked && Math.max(...self.at) >= most) {
    const low = Math.min(...self.at)
    go(self, self.at.map((p) => p - low))
  } else if (!self.check.checked && self.at[0] >= most) go(self, [0, self.at[1]])
}

function advance(self) {
  const next = self.check.checked ? self.at.map((p) => p + 1) : [self.at[0] + 1, self.at[1]]
  if (Math.max(...next) > self.data.most) return stop(self, true)
  go(self, next)
}

function stop(self, report) {
  if (!self.player) return
  self.player.stop()
  self.player = null
  name(self)
  if (report) tell(self)
}

function tell(self) {
  // The address and the figures below hear of it when the hand lets go.
  self.trigger("at", `${self.home}|${self.at[0]}-${self.at[1]}-${self.pair}`)
}

function move(self, which, to) {
  const next = [...self.at]
  if (self.check.checked) {
    const by = Math.max(-Math.min(...self.at), Math.min(self.data.most - Math.max(...self.at), to - self.at[which]))
    next[0] += by
    next[1] += by
  } else next[which] = to
  go(self, next)
}

function go(self, next) {
  self.from = [...self.shown]
  self.at = next
  self.started = performance.now()
  write(self)
  cancelAnimationFrame(self.frame)
  if (!self.player || still()) return turn(self, 1)
  const frame = (now) => {
    const part = Math.min(1, Math.max(0, (now - self.started) / TWEEN_MS))
    turn(self, part * (2 - part))
    if (part < 1) self.frame = requestAnimationFrame(frame)
  }
  self.frame = requestAnimationFrame(frame)
}

function choose(self, pair) {
  if (pair < 0 || pair >= self.dials.length || pair === self.pair) return
  self.pair = pair
  mark(self)
  write(self)
  turn(self, 1)
  tell(self)
}

function mark(self) {
  self.dials.forEach(({ root }, i) => {
    root.setAttribute("aria-checked", String(i === self.pair))
    root.tabIndex = i === self.pair ? 0 : -1
  })
}

// The half-split layout: dimension i pairs with i + d_head/2.
function arrow(x, pair, position, theta) {
  const a = x[pair], b = x[pair + x.length / 2]
  return { length: Math.hypot(a, b), angle: Math.atan2(b, a) + position * theta }
}

function pairOf(self, i, [m, n]) {
  const { q, k, theta } = self.data
  const one = arrow(q, i, m, theta[i]), two = arrow(k, i, n, theta[i])
  return { q: one, k: two, term: one.length * two.length * Math.cos(one.angle - two.angle) }
}

function table(self) {
  const { q, k, theta } = self.data, half = q.length / 2, [m, n] = self.at
  const head = "pair,theta,q_first,q_second,k_first,k_second,query_position,key_position,q_turned,k_turned,product".split(",")
  return [head, ...theta.map((by, i) =>
    [i, by, q[i], q[i + half], k[i], k[i + half], m, n, m * by, n * by, pairOf(self, i, self.at).term])]
}

function place(part, { length, angle }, scale) {
  const reach = scale > 0 ? (length / scale) * (RADIUS - 3) : 0
  const head = Math.min(9, reach)
  part.group.setAttribute("transform", `rotate(${((-angle * 180) / Math.PI).toFixed(3)})`)
  part.line.setAttribute("x2", Math.max(0, reach - head * 0.8).toFixed(2))
  part.head.setAttribute("d", `M${reach.toFixed(2)} 0 L${(reach - head).toFixed(2)} ${(head * 0.5).toFixed(2)} L${(reach - head).toFixed(2)} ${(-head * 0.5).toFixed(2)} Z`)
}

function turn(self, part) {
  self.shown = self.at.map((p, i) => self.from[i] + (p - self.from[i]) * part)
  self.dials.forEach((each, i) => {
    const found = pairOf(self, i, self.shown)
    place(each.q, found.q, self.longest)
    place(each.k, found.k, self.longest)
  })
  const { q, k } = pairOf(self, self.pair, self.shown)
  const longest = Math.max(q.length, k.length)
  place(self.big.q, q, longest)
  place(self.big.k, k, longest)
  const open = wrapped(k.angle - q.angle), r = 15
  const at = (angle) => `${(r * Math.cos(angle)).toFixed(2)} ${(-r * Math.sin(angle)).toFixed(2)}`
  self.big.wedge.setAttribute("d", `M0 0 L${at(q.angle)} A${r} ${r} 0 0 ${open > 0 ? 0 : 1} ${at(q.angle + open)} Z`)
}

function wrapped(angle) {
  return angle - 2 * Math.PI * Math.round(angle / (2 * Math.PI))
}

function number(value, digits = 3) {
  const text = value.toFixed(digits)
  return minus(Number(text) === 0 ? (0).toFixed(digits) : text)
}

const short = (value) => (value >= 1000 || value < 1e-4 ? scientific(value, 2) : value.toPrecision(3))

function write(self) {
  const { data, at, pair } = self
  const width = data.q.length
  for (const [index, slider, letter, label] of [[0, self.query, "query", data.labels[0]], [1, self.key, "key", data.labels[1]]]) {
    slider.input.max = String(data.most)
    slider.input.value = String(at[index])
    slider.input.setAttribute("aria-valuetext", `${letter} at position ${at[index]}`)
    slider.words.textContent = `${letter}${label ? ` “${label}”` : ""} at position ${at[index]}`
  }
  let sum = data.rest // of the dimensions that do not rotate
  self.dials.forEach((each, i) => {
    const { term } = pairOf(self, i, at)
    sum += term
    each.value.textContent = number(term, 2)
    each.root.setAttribute("aria-label", `pair ${i}: dimensions ${i} and ${i + width / 2}, product ${number(term)}`)
  })
  const unturned = data.d_head > width ? ` with ${number(data.rest)} from the ${data.d_head - width} dimensions that do not rotate` : ""
  self.said.textContent = `Distance ${number(at[0] - at[1], 0)}: q·k = ${number(sum)}${unturned}, ÷ √${data.d_head}: score ${number(sum / Math.sqrt(data.d_head))}`
  const { q, k, term } = pairOf(self, pair, at), theta = data.theta[pair]
  const lines = [
    `Pair ${pair}: dimensions ${pair} and ${pair + width / 2}`,
    `θ = ${short(theta)} rad per position: a full turn in ${short((2 * Math.PI) / theta)} positions`,
    `q has rotated by ${at[0]} · θ = ${number(at[0] * theta)} rad, k ${at[1]} · θ = ${number(at[1] * theta)} rad`,
    `product = |q| |k| cos(angle) = ${number(q.length)} · ${number(k.length)} · cos(${number(wrapped(q.angle - k.angle))}) = ${number(term)}`,
  ]
  while (self.about.children.length < lines.length) within(self.about, "div")
  lines.forEach((line, i) => { self.about.children[i].textContent = line })
}

function update(self, /** @type {Data} */ data, fresh) {
  self.data = data
  const pairs = data.theta.length
  resize(self.dials, pairs, () => {
    const small = dial(self.grid, "gf-rope-small")
    small.root.setAttribute("role", "radio")
    return { ...small, remove: () => small.root.remove() }
  })
  paint(self.root, data.colours, ["q", "k"])
  self.longest = 0
  for (let i = 0; i < pairs; i++) {
    self.longest = Math.max(self.longest, arrow(data.q, i, 0, 0).length, arrow(data.k, i, 0, 0).length)
  }
  if (fresh || self.home !== data.home) {
    stop(self)
    self.at = data.at.slice(0, 2)
    self.pair = data.at[2]
  }
  self.home = data.home
  self.at = self.at.map((p) => Math.min(p, data.most))
  self.pair = Math.min(self.pair, pairs - 1)
  self.note.textContent = data.note
  self.big.root.setAttribute("role", "img")
  self.big.root.setAttribute("aria-label", data.alt)
  mark(self)
  write(self)
  if (!self.player) {
    self.from = [...self.at]
    turn(self, 1)
  }
}

export default component({ create, update, remove: stop })
