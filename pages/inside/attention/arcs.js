// @ts-check
// Two columns of tokens and lines between them: who looks at whom. Hover, focus and heads are answered here.
// See pages/inside/attention/heads.py.

import { brushOf } from "../../../ui/assets/shared/canvas.js"
import { around, element, resize, within, write } from "../../../ui/assets/shared/dom.js"
import { pointerMoved, target } from "../../../ui/assets/shared/keys.js"
import { component } from "../../../ui/assets/shared/mount.js"
import { numbers } from "../../../ui/assets/shared/numbers.js"
import { saveTools } from "../../../ui/assets/shared/save.js"
import { sideOf, themed } from "../../../ui/assets/shared/theme.js"

/**
 * What is sent.
 * @typedef {object} Data
 * @property {string[]} tokens
 * @property {string} weights (head, query, key) as uint16 of 65535, base64
 * @property {number} heads
 * @property {number} layer
 * @property {number} head
 * @property {[string, string][]} colours by head
 * @property {string} hint
 * @property {string} alt
 */

const FAINT = 0.02 // weights below are not drawn, but for the token in hand

function create(place) {
  const root = within(place, "div", "gf-arcs"), chips = element("div", "gf-arcs-chips", "", { role: "group", "aria-label": "Heads shown" })
  const said = element("div", "gf-arcs-said", "", { "aria-live": "polite" })
  const stage = element("div", "gf-arcs-stage", "", { role: "group" }), canvas = element("canvas")
  const columns = ["attends", "is attended to"].map((name) =>
    element("div", "gf-arcs-column", "", { role: "listbox", "aria-label": `The token that ${name}`, tabindex: 0 }))
  stage.append(columns[0], canvas, columns[1])
  const tools = saveTools(root, () => "attention-arcs", () => table(self))
  root.append(tools, chips, said, stage)
  /** @type {any} */
  const self = { root, chips, buttons: [], said, stage, canvas, columns, cells: [[], []], on: new Set(), hand: null, weights: null, text: "", layer: null, labels: [] }
  columns.forEach((column, side) => {
    const at = (event) => self.cells[side].indexOf(around(event, ".gf-arcs-token"))
    column.addEventListener("pointermove", (event) => {
      const index = at(event)
      if (pointerMoved(self, event) && index >= 0 && (self.hand?.[0] !== side || self.hand[1] !== index)) take(self, side, index)
    })
    column.addEventListener("click", (event) => at(event) >= 0 && take(self, side, at(event)))
    column.addEventListener("focus", () => { if (!self.hand || self.hand[0] !== side) take(self, side, self.hand ? self.hand[1] : self.cells[side].length - 1) })
    column.addEventListener("blur", (event) => tools.contains(/** @type {Node | null} */ (event.relatedTarget)) || take(self, null)) // the token in hand can be saved
    column.addEventListener("keydown", (event) => {
      const index = self.hand?.[0] === side ? self.hand[1] : 0
      const last = self.cells[side].length - 1
      const next = target(event.key, index, last, "y")
      if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
        event.preventDefault()
        columns[event.key === "ArrowLeft" ? 0 : 1].focus()
      } else if (event.key === "Escape") take(self, null)
      else if (next !== undefined && next >= 0 && next <= last) {
        event.preventDefault()
        take(self, side, next)
        self.cells[side][next].scrollIntoView({ block: "nearest" })
      }
    })
  })
  stage.addEventListener("pointerleave", () => { self.pointer = null; if (!stage.contains(document.activeElement)) take(self, null) })
  new ResizeObserver(() => draw(self)).observe(stage)
  return self
}

function take(self, side, index) {
  self.hand = side === null ? null : [side, index]
  draw(self)
  tell(self)
}

function weight(self, head, query, key) {
  return self.weights[(head * self.length + query) * self.length + key] / 65535
}

function table(self) {
  const lines = []
  for (const head of [...self.on].sort((a, b) => a - b)) for (let q = 0; q < self.length; q++) for (let k = 0; k < self.length; k++) {
    const value = weight(self, head, q, k)
    if (value > 0) lines.push([head, q, self.labels[q], k, self.labels[k], value.toFixed(5)]) // sent in steps of 1/65535
  }
  return [["head", "query_position", "query", "key_position", "key", "weight"], ...lines]
}

function tell(self) {
  if (!self.hand) {
    self.said.textContent = self.hint
    return
  }
  const [side, index] = self.hand
  const parts = [...self.on].sort((a, b) => a - b).map((head) => {
    const found = []
    for (let other = 0; other < self.length; other++) {
      const value = side === 0 ? weight(self, head, index, other) : weight(self, head, other, index)
      found.push([value, other])
    }
    found.sort((a, b) => b[0] - a[0])
    return `head ${head}: ` + found.slice(0, 3).filter(([v]) => v > 0.0005).map(([v, i]) => `“${self.labels[i]}” at ${i} ${v.toFixed(3)}`).join(", ")
  })
  self.said.textContent = `“${self.labels[index]}” at position ${index} ${side === 0 ? "attends to" : "is attended to by"} ${parts.join("; ") || "nothing: no head is chosen"}`
}

function draw(self) {
  if (!self.weights) return
  const { canvas, length } = self
  const side = sideOf(self.root)
  const width = canvas.clientWidth, height = self.columns[0].clientHeight, context = brushOf(canvas, width, height)
  const row = height / length
  const marks = [new Float32Array(length), new Float32Array(length)]
  const line = (from, to, value) => {
    context.globalAlpha = Math.min(1, value)
    context.lineWidth = 1 + 2.5 * value
    context.beginPath()
    const a = (from + 0.5) * row, b = (to + 0.5) * row
    context.moveTo(0, a)
    context.bezierCurveTo(width * 0.4, a, width * 0.6, b, width, b)
    context.stroke()
  }
  for (const head of self.on) {
    context.strokeStyle = self.colours[head % self.colours.length][side]
    if (!self.hand) {
      for (let q = 0; q < length; q++) for (let k = 0; k < length; k++) {
        const value = weight(self, head, q, k)
        if (value >= FAINT) line(q, k, value * 0.8)
      }
      continue
    }
    const [column, index] = self.hand
    for (let other = 0; other < length; other++) {
      const value = column === 0 ? weight(self, head, index, other) : weight(self, head, other, index)
      if (value > 0.001) column === 0 ? line(index, other, value) : line(other, index, value)
      marks[1 - column][other] = Math.max(marks[1 - column][other], value)
    }
  }
  const chosen = themed(self.root, "primary-color")
  self.cells.forEach((cells, column) => cells.forEach((cell, index) => {
    const inHand = self.hand && self.hand[0] === column && self.hand[1] === index
    cell.classList.toggle("gf-in-hand", !!inHand)
    cell.setAttribute("aria-selected", String(!!inHand))
    const value = marks[column][index]
    cell.style.background = value > 0.005 ? `color-mix(in srgb, ${chosen} ${Math.round(value * 75)}%, transparent)` : ""
  }))
  self.columns.forEach((column, i) => column.setAttribute("aria-activedescendant", self.hand?.[0] === i ? self.cells[i][self.hand[1]].id : ""))
}

function rows(self, name) {
  self.columns.forEach((column, side) => {
    const cells = self.cells[side]
    resize(cells, self.labels.length, (i) => within(column, "div", "gf-arcs-token", "", { role: "option", id: `gf-arcs-${name}-${side}-${i}` }))
    cells.forEach((cell, i) => {
      write(cell, self.labels[i])
      cell.title = `${self.labels[i]} at position ${i}` // long ones are cut
    })
  })
}

function heads(self, count) {
  const side = sideOf(self.root)
  resize(self.buttons, count, (head) => {
    const chip = within(self.chips, "button", "gf-arcs-chip", `head ${head}`)
    chip.onclick = () => {
      self.on.has(head) ? self.on.delete(head) : self.on.add(head)
      heads(self, self.count)
      draw(self)
      tell(self)
    }
    return chip
  })
  self.buttons.forEach((chip, head) => {
    chip.setAttribute("aria-pressed", String(self.on.has(head)))
    chip.style.setProperty("--chip", self.colours[head % self.colours.length][side])
  })
  self.said.style.minHeight = `${20 * Math.max(2, Math.min(5, self.on.size))}px` // room for its lines, so that the rows below stay where they are
}

function update(self, /** @type {Data} */ data, _, key) {
  if (data.weights !== self.text) {
    self.weights = numbers(data.weights, Uint16Array)
    self.text = data.weights
  }
  const name = `${data.layer}.${data.head}`
  if (name !== self.layer || data.heads !== self.count) self.on = new Set([data.head])
  self.layer = name
  if (data.tokens.length !== self.length) self.hand = null
  self.labels = data.tokens
  self.length = data.tokens.length
  self.count = data.heads
  self.colours = data.colours
  self.hint = data.hint
  self.stage.setAttribute("aria-label", data.alt)
  rows(self, key)
  heads(self, data.heads)
  draw(self)
  tell(self)
}

export default component({ create, update })
