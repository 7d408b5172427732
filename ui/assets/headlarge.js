// @ts-check
// One head's pattern, large: who looks down, what is looked at to the right. A row and a column are marked, and said; below, the
// text, shaded by what the marked token looks at. A part of headgrid.js.

import { ramp, shade } from "./shared/colours.js"
import { element, resize, within, write } from "./shared/dom.js"
import { pointerMoved } from "./shared/keys.js"
import { strongest, telling } from "./headgrid_state.js"
import { saveTools } from "./shared/save.js"
import { sideOf, themed } from "./shared/theme.js"

const TALLEST = 300, LETTER = 7.3, LEAST_LABEL = 9, LONGEST = 10 // pixels; letters of a token at an edge

/**
 * @typedef {object} Shown
 * @property {string} name of the files that are saved
 * @property {string} title
 * @property {(query: number, key: number) => number} weight
 * @property {boolean} exact whether the weights are more than those of a small picture
 */

/** @param {HTMLElement} root */
export function createLarge(root) {
  /** @type {any} */
  const self = { root, tokens: [], palette: {}, row: null, column: null, pinned: null, cells: [], shown: null }
  root.append(saveTools(root, () => self.shown.name, () => table(self)))
  self.title = within(root, "div", "gf-heads-said")
  self.canvas = within(root, "canvas", "gf-heads-canvas")
  self.canvas.tabIndex = 0
  self.canvas.setAttribute("role", "img")
  self.said = within(root, "div", "gf-heads-pair")
  self.said.setAttribute("aria-live", "polite")
  self.strip = within(root, "div", "gf-heads-text")
  const at = (/** @type {MouseEvent} */ event) => {
    const box = self.canvas.getBoundingClientRect(), { left, top, cell } = self.place
    const inside = (value) => Math.floor(value / cell)
    return /** @type {[number, number]} */ ([inside(event.clientY - box.top - top), inside(event.clientX - box.left - left)])
  }
  const there = ([row, column]) => row >= 0 && column >= 0 && row < self.tokens.length && column < self.tokens.length
  self.canvas.addEventListener("pointermove", (event) => {
    const found = at(event)
    if (pointerMoved(self, event) && there(found)) look(self, found)
  })
  self.canvas.addEventListener("click", (event) => there(at(event)) && look(self, at(event), true))
  self.canvas.addEventListener("pointerleave", () => { self.pointer = null; back(self) })
  self.canvas.addEventListener("keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key]
    if (!move) return
    event.preventDefault()
    const next = /** @type {[number, number]} */ ([self.row + move[0], self.column + move[1]])
    if (there(next)) look(self, next, true)
  })
  self.strip.addEventListener("pointerover", (event) => {
    const row = self.cells.indexOf(event.target)
    if (row >= 0) look(self, /** @type {[number, number]} */ ([row, strongest((k) => self.shown.weight(row, k), self.tokens.length)]))
  })
  self.strip.addEventListener("pointerleave", () => back(self))
  self.observer = new ResizeObserver(() => draw(self))
  self.observer.observe(root)
  return self
}

/** @param {any} self */
export function forget(self) {
  self.observer.disconnect()
}

/**
 * @param {any} self
 * @param {Shown} shown
 */
export function show(self, shown) {
  const { tokens } = self, text = tokens.join("\u0000")
  self.shown = shown
  if (text !== self.text) self.pinned = null
  self.text = text
  write(self.title, shown.title)
  back(self)
}

function look(self, [row, column], pin = false) {
  Object.assign(self, { row, column })
  if (pin) self.pinned = [row, column]
  draw(self)
}

// To the cell that was clicked; before, to the token of the later half that looks most decidedly at another.
function back(self) {
  const { weight } = self.shown, count = self.tokens.length
  look(self, /** @type {[number, number]} */ (self.pinned ? [...self.pinned] : telling(weight, count)))
}

function table(self) {
  const { tokens, shown } = self, lines = []
  tokens.forEach((query, q) => tokens.forEach((key, k) => {
    const value = shown.weight(q, k)
    if (value > 0) lines.push([q, query, k, key, value.toFixed(5)])
  }))
  return [["query_position", "query", "key_position", "key", "weight"], ...lines]
}

function draw(self) {
  const { canvas, root, tokens, palette, shown } = self, count = tokens.length, width = root.clientWidth
  if (!shown || !width) return
  const side = sideOf(root), ratio = window.devicePixelRatio || 1
  const longest = Math.min(LONGEST, Math.max(...tokens.map((t) => t.length)))
  const edge = Math.round(longest > 1 ? longest * LETTER + 8 : 18)
  const tallest = TALLEST + (longest > 1 ? 40 : 0)
  const cell = Math.max(2, Math.min(tallest - edge, width - edge - 4) / count), size = cell * count
  self.place = { left: edge, top: edge, cell }
  const sizes = [Math.min(width, edge + size + 4), edge + size + 2]
  canvas.style.width = `${sizes[0]}px`
  canvas.style.height = `${sizes[1]}px`
  canvas.width = Math.round(sizes[0] * ratio)
  canvas.height = Math.round(sizes[1] * ratio)
  const context = canvas.getContext("2d")
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  context.clearRect(0, 0, sizes[0], sizes[1])
  context.imageSmoothingEnabled = false
  context.drawImage(picture(shown.weight, count, ramp(palette, side)), edge, edge, size, size)
  const ink = themed(root, "text-color"), chosen = themed(root, "primary-color"), paper = themed(root, "background-color", "#ffffff")
  names(self, context, { cell, edge, ink, chosen, paper })
  context.strokeStyle = ink
  context.globalAlpha = 0.35
  context.strokeRect(edge, edge, size, size)
  context.globalAlpha = 1
  context.strokeStyle = chosen
  context.lineWidth = 1.5
  context.strokeRect(edge, edge + self.row * cell, size, cell)
  context.globalAlpha = 0.6
  context.strokeRect(edge + self.column * cell, edge, cell, size)
  context.globalAlpha = 1
  context.lineWidth = 3
  context.strokeRect(edge + self.column * cell, edge + self.row * cell, cell, cell)
  say(self, side)
}

function picture(weight, count, colours) {
  const small = element("canvas")
  small.width = small.height = count
  const context = small.getContext("2d"), image = context.createImageData(count, count)
  for (let q = 0; q < count; q++) for (let k = 0; k < count; k++) {
    const [r, g, b] = colours[Math.round(weight(q, k) * 255)] ?? colours[0]
    image.data.set([r, g, b, 255], 4 * (q * count + k))
  }
  context.putImageData(image, 0, 0)
  return small
}

// The tokens at both edges: as many as can be read, and always the two that are marked.
function names(self, context, { cell, edge, ink, chosen, paper }) {
  const { tokens } = self, step = Math.max(1, Math.ceil(LEAST_LABEL / cell)), font = Math.round(Math.min(13, Math.max(LEAST_LABEL, cell * step - 1)))
  const family = themed(self.root, "code-font", "monospace"), cut = (t) => (t.length > LONGEST ? `${t.slice(0, LONGEST - 1)}…` : t)
  const upright = tokens.some((t) => t.length > 1)
  const put = (index, along, marked) => {
    const at = edge + (index + 0.5) * cell, text = cut(tokens[index])
    context.save()
    context.translate(along ? at : edge - 4, along ? edge - 4 : at)
    if (along && upright) context.rotate(-Math.PI / 2)
    context.font = `${marked ? "700 13px" : `${font}px`} ${family}`
    context.textAlign = along ? (upright ? "left" : "center") : "right"
    context.textBaseline = along && !upright ? "alphabetic" : "middle"
    if (marked) {
      const w = Math.max(context.measureText(text).width + 4, 12), x = along ? (upright ? -2 : -w / 2) : -w + 2
      context.fillStyle = paper
      context.fillRect(x - 4, along && !upright ? -13 : -8, w + 8, 16)
    }
    context.fillStyle = marked ? chosen : ink
    context.globalAlpha = marked ? 1 : 0.75
    context.fillText(text, 0, 0)
    context.restore()
  }
  for (let i = 0; i < tokens.length; i += step) for (const along of [true, false]) put(i, along, false)
  put(self.column, true, true)
  put(self.row, false, true)
}

function say(self, side) {
  const { tokens, row, column, shown, palette, cells } = self, value = shown.weight(row, column)
  const share = shown.exact ? `${(value * 100).toFixed(1)}%` : `about ${Math.round(value * 100)}%`
  write(self.said, `“${tokens[row]}” at position ${row} looks at “${tokens[column]}” at position ${column}: ${share} of its weight`)
  self.canvas.setAttribute("aria-label", `${shown.title}. Queries go down, keys to the right. ${self.said.textContent}. Arrow keys move.`)
  const letters = tokens.every((t) => [...t].length <= 2)
  self.strip.classList.toggle("gf-heads-letters", letters)
  resize(cells, tokens.length, () => within(self.strip, "span", "gf-heads-token"))
  const most = Math.max(...tokens.map((_, k) => shown.weight(row, k)), 1e-6)
  cells.forEach((node, k) => {
    write(node, tokens[k])
    const found = shade(palette, shown.weight(row, k) / most, side)
    Object.assign(node.style, { background: found.background, color: found.color })
    node.classList.toggle("gf-heads-looking", k === row)
    node.classList.toggle("gf-heads-looked", k === column)
  })
}
