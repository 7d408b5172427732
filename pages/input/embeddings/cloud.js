// @ts-check
// Tokens in three dimensions as SVG, turned by dragging, the arrow keys or two sliders. See pages/input/embeddings/cloud.py.

import { level } from "../../../ui/assets/shared/colours.js"
import { alone, around, vector, within } from "../../../ui/assets/shared/dom.js"
import { component } from "../../../ui/assets/shared/mount.js"
import { saveTools } from "../../../ui/assets/shared/save.js"
import { sideOf, themed } from "../../../ui/assets/shared/theme.js"

/**
 * What is sent.
 * @typedef {object} Data
 * @property {number[]} ids
 * @property {string[]} words
 * @property {number[]} points (token, 3)
 * @property {number[]} classes
 * @property {string[]} names of the classes
 * @property {[string, string][]} looks colour and shape by class
 * @property {boolean[]} named
 * @property {boolean} letters
 * @property {number} chosen
 * @property {number[]} near
 * @property {number[] | null} shade in percent
 * @property {string[]} titles
 * @property {[number, number]} angles degrees of turn and tilt
 * @property {import("../../../ui/assets/shared/colours.js").Palette} palette
 * @property {string} alt
 * @property {string} csv
 * @property {number | null} top
 */

const WIDTH = 680, HEIGHT = 560, SCALE = 262, EYE = 6 // units of the picture; the eye is that far from the middle, in radii of the cloud
const LIMITS = [[0, 359], [-90, 90]] // degrees of the turn and the tilt
const SHAPES = { // within a circle of radius 1
  circle: null, square: [[-0.85, -0.85], [0.85, -0.85], [0.85, 0.85], [-0.85, 0.85]], diamond: [[0, -1.15], [1.15, 0], [0, 1.15], [-1.15, 0]],
  "triangle-up": [[0, -1.15], [1.05, 0.75], [-1.05, 0.75]], hexagon: [[1, 0], [0.5, 0.87], [-0.5, 0.87], [-1, 0], [-0.5, -0.87], [0.5, -0.87]],
  star: Array.from({ length: 10 }, (_, i) => [Math.sin(i * Math.PI / 5) * (i % 2 ? 0.55 : 1.25), -Math.cos(i * Math.PI / 5) * (i % 2 ? 0.55 : 1.25)]),
  cross: [[-0.4, -1], [0.4, -1], [0.4, -0.4], [1, -0.4], [1, 0.4], [0.4, 0.4], [0.4, 1], [-0.4, 1], [-0.4, 0.4], [-1, 0.4], [-1, -0.4], [-0.4, -0.4]],
  x: [[-1, -0.5], [-0.5, -1], [0, -0.5], [0.5, -1], [1, -0.5], [0.5, 0], [1, 0.5], [0.5, 1], [0, 0.5], [-0.5, 1], [-1, 0.5], [-0.5, 0]],
}

function create(parent, _, signal) {
  const root = within(parent, "div", "gf-cloud"), legend = within(root, "div", "gf-cloud-legend")
  const svg = vector("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, tabindex: "0", role: "img" }, root)
  const said = within(root, "div", "gf-cloud-said"), bar = within(root, "div", "gf-cloud-bar")
  const self = { root, legend, svg, said, bar, angles: null, sent: "", drag: null, moved: false, timer: 0, sliders: [], nodes: [], frame: 0, data: null, trigger: null }
  ;["Turn", "Tilt"].forEach((name, i) => {
    const [low, high] = LIMITS[i]
    const label = within(bar, "label", "", name), input = within(label, "input", "", "", { type: "range", min: low, max: high }), output = within(label, "output")
    input.addEventListener("input", () => { self.angles[i] = Number(input.value); changed(self) })
    self.sliders.push([input, output])
  })
  svg.before(saveTools(root, () => "embedding-cloud", () => self.data.csv, () => /** @type {[string, number, number]} */ (drawing(self))))
  svg.addEventListener("pointerdown", (event) => {
    self.drag = [event.clientX, event.clientY, ...self.angles]
    self.moved = false
  })
  const release = () => { self.drag = null }
  window.addEventListener("pointermove", (event) => {
    if (!self.drag) return
    const [x, y, turn, tilt] = self.drag
    const across = event.clientX - x, down = event.clientY - y
    if (Math.abs(across) + Math.abs(down) < 4 && !self.moved) return
    self.moved = true
    self.angles = [(Math.round(turn - across * 0.4) % 360 + 360) % 360, Math.max(-90, Math.min(90, Math.round(tilt + down * 0.4)))]
    changed(self)
  }, { signal })
  window.addEventListener("pointerup", release, { signal })
  window.addEventListener("pointercancel", release, { signal })
  svg.addEventListener("click", (event) => {
    const index = around(event, "[data-i]")?.dataset.i
    if (index !== undefined && !self.moved) self.trigger?.("clicked", String(self.data.ids[index]))
  })
  svg.addEventListener("pointerover", (event) => tell(self, around(event, "[data-i]")?.dataset.i))
  svg.addEventListener("keydown", (event) => {
    const [turn, tilt] = { ArrowLeft: [-5, 0], ArrowRight: [5, 0], ArrowUp: [0, 5], ArrowDown: [0, -5] }[event.key] ?? []
    if (turn === undefined) return
    event.preventDefault()
    self.angles = [(self.angles[0] + turn + 360) % 360, Math.max(-90, Math.min(90, self.angles[1] + tilt))]
    changed(self)
  })
  return self
}

function changed(self) {
  cancelAnimationFrame(self.frame)
  self.frame = requestAnimationFrame(() => place(self))
  clearTimeout(self.timer) // the address is told once the hand has come to rest
  self.timer = setTimeout(() => {
    const text = self.angles.join(",")
    if (text !== self.sent) self.trigger("turn", (self.sent = text))
  }, 500)
}

function tell(self, index = undefined) {
  const d = self.data
  const i = index === undefined ? d.chosen : Number(index)
  self.said.textContent = `“${d.words[i]}”, id ${d.ids[i]}, ${d.names[d.classes[i]]}${i !== d.chosen ? "" : `. Drag to rotate, or use the arrow keys${alone() ? "" : "; click a token to choose it"}.`}`
}

function shape(symbol, size, parent, attributes) {
  if (!SHAPES[symbol]) return vector("circle", { r: size, ...attributes }, parent)
  return vector("polygon", { points: SHAPES[symbol].map(([x, y]) => `${(x * size).toFixed(1)},${(y * size).toFixed(1)}`).join(" "), ...attributes }, parent)
}

function build(self) {
  const { data: d, svg } = self
  const side = sideOf(self.root), text = themed(self.root, "text-color", "#222"), colour = (name) => d.palette[name][side]
  svg.replaceChildren()
  svg.setAttribute("aria-label", d.alt)
  svg.setAttribute("font-family", "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace")
  vector("rect", { width: WIDTH, height: HEIGHT, fill: themed(self.root, "background-color", "#fff") }, svg)
  self.axes = [0, 1, 2].map((i) => {
    const line = vector("line", { stroke: colour("quiet"), "stroke-width": 1.2, "stroke-opacity": 0.7 }, svg)
    const name = vector("text", { fill: colour("quiet"), "font-size": 15, "text-anchor": "middle", "font-family": "sans-serif" }, svg)
    name.textContent = `PC${i + 1}`
    vector("title", {}, line, d.titles[i])
    return [line, name]
  })
  self.threads = d.near.map(() => vector("line", { stroke: colour("quiet"), "stroke-width": 1.3, "stroke-dasharray": "3 4" }, svg))
  self.layer = vector("g", {}, svg)
  const inside = d.letters && !d.shade
  self.nodes = d.ids.map((id, i) => {
    const group = vector("g", { "data-i": i, style: "cursor:pointer" }, self.layer)
    const [shade, symbol] = d.looks[d.classes[i]]
    const own = d.shade ? colour(`seq${level(d.shade[i] / 100)}`) : colour(shade)
    const size = inside ? 13 : d.letters ? 7 : 4.5
    if (i === d.chosen) vector("circle", { r: size + 6, fill: "none", stroke: colour("attention"), "stroke-width": 3.5 }, group)
    const rest = { fill: own, "fill-opacity": inside ? 0.28 : 0.9, stroke: d.shade ? colour("quiet") : own, "stroke-width": 1.4 }
    shape(symbol, size, group, rest)
    if (d.named[i]) {
      const label = vector("text", inside ? { y: 6, "text-anchor": "middle", "font-size": 18 } : { x: size + 4, y: 5, "font-size": 15 }, group)
      label.setAttribute("fill", text)
      label.textContent = d.words[i]
    }
    return group
  })
  self.legend.replaceChildren()
  if (d.shade) {
    const item = within(self.legend, "span", "", "rare ")
    const scale = within(item, "i", "gf-cloud-scale")
    scale.style.background = `linear-gradient(to right, ${[0, 1, 2, 3, 4, 5, 6].map((i) => colour(`seq${i}`)).join(", ")})`
    item.append(` frequent: log₁₀(1 + count) from 0 to ${d.top}`)
  } else d.names.forEach((name, i) => {
    const item = within(self.legend, "span")
    const icon = vector("svg", { viewBox: "-7 -7 14 14", "aria-hidden": "true" }, item)
    shape(d.looks[i][1], 5, icon, { fill: colour(d.looks[i][0]) })
    item.append(name)
  })
}

function place(self) {
  const { data: d, angles: [turn, tilt] } = self
  const a = turn * Math.PI / 180, b = tilt * Math.PI / 180, ca = Math.cos(a), sa = Math.sin(a), cb = Math.cos(b), sb = Math.sin(b)
  const seen = (x, y, z) => { // components 1, 2, 3: right, up, towards the eye
    const right = x * ca + z * sa, depth = -x * sa + z * ca
    const up = y * cb - depth * sb, near = y * sb + depth * cb
    const k = EYE / (EYE - near)
    return [WIDTH / 2 + right * k * SCALE, HEIGHT / 2 - up * k * SCALE, near, k]
  }
  const at = d.ids.map((_, i) => seen(d.points[3 * i], d.points[3 * i + 1], d.points[3 * i + 2]))
  self.axes.forEach(([line, name], i) => {
    const from = [0, 0, 0], to = [0, 0, 0]
    from[i] = -0.9
    to[i] = 0.9
    const [x1, y1] = seen(...from), [x2, y2] = seen(...to)
    for (const [key, value] of Object.entries({ x1, y1, x2, y2 })) line.setAttribute(key, value.toFixed(1))
    name.setAttribute("x", Math.max(20, Math.min(WIDTH - 20, x2 + (x2 - x1) * 0.03)).toFixed(1))
    name.setAttribute("y", Math.max(16, Math.min(HEIGHT - 6, y2 + (y2 - y1) * 0.03 + 5)).toFixed(1))
  })
  self.threads.forEach((line, n) => {
    const [x1, y1] = at[d.chosen], [x2, y2] = at[d.near[n]]
    for (const [key, value] of Object.entries({ x1, y1, x2, y2 })) line.setAttribute(key, value.toFixed(1))
  })
  const order = at.map((_, i) => i).sort((i, j) => at[i][2] - at[j][2]) // what is near covers what is far
  order.forEach((i, rank) => {
    const [x, y, near, k] = at[i]
    const node = self.nodes[i]
    node.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${k.toFixed(3)})`)
    node.setAttribute("opacity", Math.max(0.45, Math.min(1, 0.78 + 0.3 * near)).toFixed(2))
    if (self.layer.children[rank] !== node) self.layer.insertBefore(node, self.layer.children[rank] ?? null)
  })
  self.sliders.forEach(([input, output], i) => {
    input.value = self.angles[i]
    output.textContent = `${self.angles[i]}°`
  })
}

function drawing(self) {
  const copy = self.svg.cloneNode(true)
  copy.setAttribute("width", String(WIDTH))
  copy.setAttribute("height", String(HEIGHT))
  return [new XMLSerializer().serializeToString(copy), WIDTH, HEIGHT]
}

function update(self, /** @type {Data} */ data) {
  const look = themed(self.root, "background-color")
  const { angles, ...rest } = data
  const text = JSON.stringify(rest)
  // The hand is ahead of the server: angles from there count at first, and when a link brings others.
  if (!self.angles) { self.angles = [...angles]; self.sent = angles.join(",") }
  if (text !== self.text || look !== self.look) {
    self.data = data
    self.text = text
    self.look = look
    build(self)
    place(self)
    tell(self)
  }
}

export default component({ create, update })
