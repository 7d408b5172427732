// @ts-check
// Every head's pattern as a small picture, in rows of layers or sorted, and one of them large: the one that is pointed at, or
// else the one that was clicked. See pages/inside/attention/heads.py and headlarge.js.

import { neighbour, squared } from "./headgrid_state.js"
import { createLarge, hidden, show } from "./headlarge.js"
import { raster } from "../../../ui/assets/shared/canvas.js"
import { ramp } from "../../../ui/assets/shared/colours.js"
import { around, element, resize, within, write } from "../../../ui/assets/shared/dom.js"
import { pointerMoved } from "../../../ui/assets/shared/keys.js"
import { component } from "../../../ui/assets/shared/mount.js"
import { bytes, numbers } from "../../../ui/assets/shared/numbers.js"
import { asker } from "../../../ui/assets/shared/play.js"
import { saveTools } from "../../../ui/assets/shared/save.js"
import { sideOf, themed } from "../../../ui/assets/shared/theme.js"

/**
 * What is sent. A head is named by its place, layer * heads + head.
 * @typedef {object} Data
 * @property {number} layers
 * @property {number} heads
 * @property {number} size rows and columns of a picture
 * @property {number} step tokens that a row of a picture stands for
 * @property {string} pixels (layer, head, row, column) as uint8, base64
 * @property {boolean} triangle whether only the lower triangle of each was sent
 * @property {boolean} masked whether nobody may look at later tokens
 * @property {string} full (query, key) of the chosen head as uint16 of 65535, base64
 * @property {string[]} tokens
 * @property {[number, number]} chosen layer, head
 * @property {number[] | null} order the heads that are shown; null: all of them, a row for each layer
 * @property {string[]} scores what is written beside their names, by place
 * @property {string[]} names what each does, in words, by place
 * @property {(string | null)[]} habits the name of what each does, by place
 * @property {[string, string, string][]} legend name, colour of the palette and words of each habit
 * @property {string[]} hints by place
 * @property {string} alt
 * @property {import("../../../ui/assets/shared/colours.js").Palette} palette
 */

const FEW = 8 // heads: they are drawn larger, for they fill no more than two lines
const MANY = 64 // heads: so many are drawn smaller, in a place that scrolls

function create(place) {
  const root = within(place, "div", "gf-heads"), left = within(root, "div", "gf-heads-left"), grid = element("div", "gf-heads-grid", "", { role: "group" })
  const tools = saveTools(left, () => "attention-heads", () => table(self)), legend = element("div", "gf-heads-legend")
  left.append(tools, grid, legend)
  const large = createLarge(within(root, "div", "gf-heads-large"))
  /** @type {any} */
  const self = { root, large, grid, legend, keys: [], labels: [], buttons: [], shown: [], layers: 0, heads: 0, chosen: -1, told: -1, text: "", laid: "", pixels: null, theme: "" }
  self.question = asker(() => self.chosen, (index) => self.trigger("chosen", `${Math.floor(index / self.heads)},${index % self.heads}`), () => self.again())
  const at = (event) => self.buttons.indexOf(around(event, ".gf-head"))
  grid.addEventListener("click", (event) => {
    const index = at(event)
    if (index < 0 || index === self.chosen) return
    self.chosen = index
    mark(self)
    tell(self, index)
    self.question.ask()
  })
  grid.addEventListener("pointermove", (event) => pointerMoved(self, event) && tell(self, at(event)))
  grid.addEventListener("pointerleave", () => { self.pointer = null; tell(self, self.chosen) })
  grid.addEventListener("focusin", (event) => tell(self, at(event)))
  grid.addEventListener("focusout", () => tell(self, self.chosen))
  grid.addEventListener("keydown", (event) => {
    const index = self.shown.indexOf(at(event))
    const next = index < 0 ? undefined : neighbour(self.shown.map((i) => self.buttons[i].getBoundingClientRect()), index, event.key)
    if (next === undefined) return
    event.preventDefault()
    self.buttons[self.shown[next]]?.focus()
  })
  return self
}

function table(self) {
  const { size, heads } = self, lines = []
  for (const head of self.shown) for (let i = 0; i < size ** 2; i++) {
    const value = self.pixels[head * size ** 2 + i]
    if (value) lines.push([Math.floor(head / heads), head % heads, Math.floor(i / size), i % size, (value / 255).toFixed(3)])
  }
  return [["layer", "head", "row", "column", "weight"], ...lines]
}

// Enlarges a head: the chosen one in full, another as its small picture has it.
function tell(self, index) {
  if (index < 0) return
  self.told = index
  const { size, step, tokens } = self.data, n = tokens.length, full = index === self.sent ? self.full : null
  const picture = index * size * size
  show(self.large, {
    name: `attention-layer-${Math.floor(index / self.heads)}-head-${index % self.heads}`,
    title: self.data.hints[index],
    weight: full ? (q, k) => full[q * n + k] / 65535 : (q, k) => self.pixels[picture + Math.floor(q / step) * size + Math.floor(k / step)] / 255,
    exact: full !== null, // a picture has steps of 1/255
    masked: self.data.masked,
  })
}

function mark(self) {
  const tabbed = self.shown.includes(self.chosen) ? self.chosen : self.shown[0]
  self.buttons.forEach((button, index) => {
    button.setAttribute("aria-pressed", String(index === self.chosen))
    button.tabIndex = index === tabbed ? 0 : -1
  })
}

// The chosen one comes into sight within the grid; the page stays where it is.
function reveal(self) {
  const button = self.buttons[self.chosen], { grid } = self
  if (!self.shown.includes(self.chosen)) return
  const box = button.getBoundingClientRect(), place = grid.getBoundingClientRect()
  if (box.left < place.left || box.right > place.right) grid.scrollLeft += box.left - place.left - 8
  if (grid.scrollHeight <= grid.clientHeight) return
  if (box.top < place.top) grid.scrollTop -= place.top - box.top + 8
  else if (box.bottom > place.bottom) grid.scrollTop += box.bottom - place.bottom + 8
}

function rebuild(self, { layers, heads }) {
  self.question.forget()
  Object.assign(self, { layers, heads, laid: "" })
  self.grid.replaceChildren()
  self.grid.style.setProperty("--heads", heads)
  self.grid.style.setProperty("--layers", layers)
  self.grid.classList.toggle("gf-many", layers * heads > MANY)
  self.grid.classList.toggle("gf-few", layers * heads <= FEW)
  const label = (text, kind, place) => {
    const made = element("span", `gf-heads-label ${kind}`, text)
    made.style.setProperty("--at", place + 2)
    return made
  }
  self.labels = [
    ...Array.from({ length: heads }, (_, h) => label(heads > 8 ? `${h}` : `head ${h}`, "gf-heads-column", h)),
    ...Array.from({ length: layers }, (_, l) => label(layers * heads > MANY ? `${l}` : `block ${l}`, "gf-heads-row", l)),
  ]
  if (layers * heads > MANY) self.labels.push(element("span", "gf-heads-corner"))
  self.buttons = Array.from({ length: layers * heads }, (_, index) => {
    const button = element("button", "gf-head"), layer = Math.floor(index / heads), head = index % heads
    button.style.setProperty("--layer", String(layer + 2))
    button.style.setProperty("--head", String(head + 2))
    within(button, "canvas")
    const caption = within(button, "span", "gf-head-caption")
    within(caption, "span", "gf-head-name", `${layer}.${head} `)
    within(caption, "span", "gf-head-score")
    within(caption, "span", "gf-head-does")
    return button
  })
}

function arrange(self, { order, layers, heads }) {
  const laid = JSON.stringify([order, layers, heads])
  if (laid === self.laid) return
  self.laid = laid
  self.shown = order ?? self.buttons.map((_, index) => index)
  self.grid.classList.toggle("gf-sorted", order !== null)
  self.legend.hidden = order !== null || layers * heads <= MANY // each says it by itself
  self.grid.replaceChildren(...(order ? [] : self.labels), ...self.shown.map((index) => self.buttons[index]))
  self.grid.scrollTop = 0
}

function dress(self, { habits, scores, names, legend, palette }) {
  const side = sideOf(self.root), colours = Object.fromEntries(legend.map(([name, colour]) => [name, palette[colour][side]]))
  self.buttons.forEach((button, index) => {
    if (colours[habits[index]]) button.style.setProperty("--habit", colours[habits[index]])
    else button.style.removeProperty("--habit")
    const [, score, does] = button.lastChild.children
    write(score, `${scores[index]} `)
    write(does, names[index])
  })
  resize(self.keys, legend.length, () => within(self.legend, "span", "gf-heads-habit"))
  self.keys.forEach((node, i) => {
    write(node, legend[i][2])
    node.style.setProperty("--habit", colours[legend[i][0]])
  })
}

function draw(self, { size, palette, masked }) {
  const side = sideOf(self.root), colours = ramp(palette, side), behind = hidden(palette, side)
  self.buttons.forEach((button, index) => {
    const start = index * size * size
    raster(button.firstChild, size, size, (k, q) => (masked && k > q ? behind : colours[self.pixels[start + q * size + k]]))
  })
}

function update(self, /** @type {Data} */ data) {
  Object.assign(self.large, { tokens: data.tokens, palette: data.palette })
  const theme = themed(self.root, "background-color")
  const fresh = data.layers !== self.layers || data.heads !== self.heads
  if (fresh) rebuild(self, data)
  if (fresh || data.pixels !== self.text || theme !== self.theme) {
    self.pixels = data.triangle ? squared(bytes(data.pixels), data.size) : bytes(data.pixels)
    self.text = data.pixels
    self.size = data.size
    self.theme = theme
    draw(self, data)
  }
  arrange(self, data)
  dress(self, data)
  self.data = data
  self.full = numbers(data.full, Uint16Array)
  self.grid.setAttribute("aria-label", data.alt)
  // What is written on a button begins its name: who speaks to the computer says what is seen.
  self.buttons.forEach((button, index) => button.setAttribute("aria-label", `${button.textContent.trim()}: ${data.hints[index]}`))
  const before = self.chosen
  self.sent = data.chosen[0] * data.heads + data.chosen[1]
  if (self.question.answered(self.sent)) self.chosen = self.sent
  mark(self)
  if (self.chosen !== before) reveal(self)
  const focused = self.buttons.indexOf(document.activeElement)
  tell(self, focused >= 0 ? focused : self.chosen)
}

export default component({ create, update })
