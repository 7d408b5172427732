// @ts-check
// Every head's pattern as a small picture: rows are layers, columns heads. See pages/inside/attention/shared.py.

import { ramp } from "./shared/colours.js"
import { around, element, within } from "./shared/dom.js"
import { pointerMoved } from "./shared/keys.js"
import { component } from "./shared/mount.js"
import { bytes } from "./shared/numbers.js"
import { saveTools } from "./shared/save.js"
import { sideOf, themed } from "./shared/theme.js"

/**
 * What is sent.
 * @typedef {object} Data
 * @property {number} layers
 * @property {number} heads
 * @property {number} size rows and columns of a picture
 * @property {string} pixels (layer, head, row, column) as uint8, base64
 * @property {[number, number]} chosen layer, head
 * @property {string[]} hints by layer, then head
 * @property {string} alt
 * @property {import("./shared/colours.js").Palette} palette
 */

function create(place) {
  const root = within(place, "div", "gf-heads"), said = element("div", "gf-heads-said"), grid = element("div", "gf-heads-grid")
  grid.setAttribute("role", "group")
  const tools = saveTools(root, () => "attention-heads", () => table(self))
  root.append(tools, said, grid)
  /** @type {any} */
  const self = { root, said, grid, buttons: [], layers: 0, heads: 0, chosen: 0, text: "", pixels: null, theme: "" }
  const at = (event) => self.buttons.indexOf(around(event, ".gf-head"))
  grid.addEventListener("click", (event) => {
    const index = at(event)
    if (index < 0 || index === self.chosen) return
    self.chosen = index
    mark(self)
    self.trigger("chosen", `${Math.floor(index / self.heads)},${index % self.heads}`)
  })
  grid.addEventListener("pointermove", (event) => pointerMoved(self, event) && tell(self, at(event)))
  grid.addEventListener("pointerleave", () => { self.pointer = null; tell(self, self.chosen) })
  grid.addEventListener("focusin", (event) => tell(self, at(event)))
  grid.addEventListener("keydown", (event) => {
    const index = at(event)
    const move = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: self.heads, ArrowUp: -self.heads }[event.key]
    if (index < 0 || move === undefined) return
    event.preventDefault()
    self.buttons[index + move]?.focus()
  })
  return self
}

function table(self) {
  const { size, heads } = self, lines = []
  self.pixels.forEach((value, i) => {
    const head = Math.floor(i / size ** 2)
    if (value) lines.push([Math.floor(head / heads), head % heads, Math.floor(i / size) % size, i % size, (value / 255).toFixed(3)])
  })
  return [["layer", "head", "row", "column", "weight"], ...lines]
}

function tell(self, index) {
  if (index >= 0) self.said.textContent = self.hints[index]
}

function mark(self) {
  self.buttons.forEach((button, index) => {
    button.setAttribute("aria-pressed", String(index === self.chosen))
    button.tabIndex = index === self.chosen ? 0 : -1
  })
}

function rebuild(self, layers, heads) {
  self.layers = layers
  self.heads = heads
  self.buttons = []
  self.grid.replaceChildren()
  self.grid.style.setProperty("--heads", heads)
  const label = (text, kind) => within(self.grid, "span", kind, text)
  label("", "gf-heads-corner")
  for (let h = 0; h < heads; h++) label(heads > 8 ? `${h}` : `head ${h}`, "gf-heads-column")
  for (let l = 0; l < layers; l++) {
    label(`layer ${l}`, "gf-heads-row")
    for (let h = 0; h < heads; h++) {
      const button = within(self.grid, "button", "gf-head")
      button.type = "button"
      within(button, "canvas")
      self.buttons.push(button)
    }
  }
}

function draw(self, size, palette) {
  const colours = ramp(palette, sideOf(self.root))
  self.buttons.forEach((button, index) => {
    const canvas = button.firstChild
    if (canvas.width !== size) canvas.width = canvas.height = size
    const context = canvas.getContext("2d")
    const image = context.createImageData(size, size)
    const start = index * size * size
    for (let i = 0; i < size * size; i++) {
      const [r, g, b] = colours[self.pixels[start + i]]
      image.data[4 * i] = r
      image.data[4 * i + 1] = g
      image.data[4 * i + 2] = b
      image.data[4 * i + 3] = 255
    }
    context.putImageData(image, 0, 0)
  })
}

/**
 * @param {any} self
 * @param {Data} data
 */
function update(self, data) {
  const theme = themed(self.root, "background-color")
  const fresh = data.layers !== self.layers || data.heads !== self.heads
  if (fresh) rebuild(self, data.layers, data.heads)
  if (fresh || data.pixels !== self.text || theme !== self.theme) {
    self.pixels = bytes(data.pixels)
    self.text = data.pixels
    self.size = data.size
    self.theme = theme
    draw(self, data.size, data.palette)
  }
  self.hints = data.hints
  self.grid.setAttribute("aria-label", data.alt)
  self.buttons.forEach((button, index) => button.setAttribute("aria-label", data.hints[index]))
  self.chosen = data.chosen[0] * data.heads + data.chosen[1]
  mark(self)
  const focused = self.buttons.indexOf(document.activeElement)
  tell(self, focused >= 0 ? focused : self.chosen)
}

export default component({ create, update })
