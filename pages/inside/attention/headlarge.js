// @ts-check
// One head's pattern, large: who looks down, what is looked at to the right. A row and a column are marked, and said; below, the
// text, shaded by what the marked token looks at. A part of headgrid.js.

import { brushOf, raster } from "../../../ui/assets/shared/canvas.js"
import { channels, ramp, shade } from "../../../ui/assets/shared/colours.js"
import { beginning, characters, element, pointIn, resize, windowHeight, within, write } from "../../../ui/assets/shared/dom.js"
import { pointerMoved } from "../../../ui/assets/shared/keys.js"
import { labels, middle, strongest, telling, words } from "./headgrid_state.js"
import { saveTools } from "../../../ui/assets/shared/save.js"
import { sideOf, themed } from "../../../ui/assets/shared/theme.js"

const LETTER = 7, LEAST_LABEL = 9, LONGEST = 10 // pixels; letters of a token at an edge
const SHORTEST = 300, HIGHEST = 620, REST = 395 // pixels of a pattern with its edges, and of what else stands on a screen
const TITLE = 18, BELOW = 24 // pixels of the words that say what an axis is, and of the scale of colours
const LEGEND = 260 // pixels of the scale, with all its words
const LOOKS = "this token attends …", LOOKED = "… to this one"

/**
 * @typedef {object} Shown
 * @property {string} name of the files that are saved
 * @property {string} title
 * @property {(query: number, key: number) => number} weight
 * @property {boolean} exact whether the weights are more than those of a small picture
 * @property {boolean} masked whether nobody may look at later tokens
 */

/** @param {HTMLElement} root */
export function createLarge(root) {
  /** @type {any} */
  const self = { root, tokens: [], palette: {}, row: null, column: null, pinned: null, cells: [], shown: null }
  root.append(saveTools(root, () => self.shown.name, () => table(self)))
  self.title = within(root, "div", "gf-heads-said")
  self.canvas = within(root, "canvas", "gf-heads-canvas", "", { role: "img", tabindex: 0 })
  self.said = within(root, "div", "gf-heads-pair", "", { "aria-live": "polite" })
  self.strip = within(root, "div", "gf-heads-text")
  const at = (/** @type {MouseEvent} */ event) => {
    const [x, y] = pointIn(self.canvas, event), { left, top, cell } = self.place
    const inside = (value) => Math.floor(value / cell)
    return /** @type {[number, number]} */ ([inside(y - top), inside(x - left)])
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
  root.addEventListener("gf-spare", () => draw(self))
  new ResizeObserver(() => draw(self)).observe(root)
  return self
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
    if (value > 0) lines.push([q, query, k, key, value.toFixed(shown.exact ? 5 : 3)])
  }))
  return [["query_position", "query", "key_position", "key", "weight"], ...lines]
}

function draw(self) {
  const { canvas, root, tokens, palette, shown } = self, count = tokens.length, width = root.clientWidth
  if (!shown || !width) return
  const side = sideOf(root)
  const { edge, cell, written } = fitting(tokens, width), size = cell * count
  self.place = { left: edge, top: edge, cell }
  const sizes = [Math.min(width, edge + Math.max(size, LEGEND) + 4), edge + size + 2 + BELOW]
  canvas.style.width = `${sizes[0]}px`
  const context = brushOf(canvas, sizes[0], sizes[1])
  context.imageSmoothingEnabled = false
  const colours = ramp(palette, side), behind = hidden(palette, side)
  context.drawImage(picture(shown.weight, count, colours, shown.masked ? behind : null), edge, edge, size, size)
  const ink = themed(root, "text-color"), chosen = themed(root, "primary-color"), paper = themed(root, "background-color", "#ffffff")
  names(self, context, { cell, edge, ink, chosen, paper, written })
  titles(self, context, { edge, size, ink })
  scale(self, context, { edge, size, ink, colours, behind: shown.masked ? behind : null })
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

// The room for a pattern and its edges: every token is written where there is room, else the words.
function fitting(tokens, width) {
  const tallest = Math.max(SHORTEST, Math.min(HIGHEST, windowHeight() - REST))
  const room = (written) => {
    const longest = Math.min(LONGEST, Math.max(1, ...written.map(({ text }) => characters(text).length)))
    const edge = TITLE + Math.round(longest > 1 ? longest * LETTER + 8 : 18)
    return { edge, cell: Math.max(2, Math.min(tallest - edge - BELOW, width - edge - 4) / tokens.length), written }
  }
  const every = room(labels(tokens, LEAST_LABEL, LEAST_LABEL))
  return every.cell >= LEAST_LABEL ? every : room(labels(tokens, room(words(tokens)).cell, LEAST_LABEL))
}

/**
 * The colour of what the mask hides, [r, g, b]: of no weight, not even none.
 * @param {import("../../../ui/assets/shared/colours.js").Palette} palette
 * @param {number} side
 */
export function hidden(palette, side) {
  const [paper, grey] = [palette.seq0[side], palette.quiet[side]].map(channels)
  return paper.map((c, i) => Math.round(0.75 * c + 0.25 * grey[i]))
}

// What the two axes are.
function titles(self, context, { edge, size, ink }) {
  context.save()
  context.fillStyle = ink
  context.font = `13px ${themed(self.root, "font", "sans-serif")}`
  context.textAlign = "center"
  context.textBaseline = "top"
  context.fillText(LOOKED, edge + size / 2, 1)
  context.translate(1, edge + size / 2)
  context.rotate(-Math.PI / 2)
  context.fillText(LOOKS, 0, 0)
  context.restore()
}

// Which colour is which weight, below the pattern.
function scale(self, context, { edge, size, ink, colours, behind }) {
  const top = edge + size + 10, wide = Math.min(110, size / 3), left = edge + 12
  context.save()
  for (let i = 0; i < wide; i++) {
    context.fillStyle = `rgb(${colours[Math.round((i / wide) * 255)].join(",")})`
    context.fillRect(left + i, top, 1.5, 10)
  }
  context.font = `12px ${themed(self.root, "font", "sans-serif")}`
  context.textBaseline = "middle"
  context.fillStyle = ink
  context.fillText("0", left - 11, top + 6)
  context.fillText("weight 1", left + wide + 5, top + 6)
  if (behind) {
    context.fillStyle = `rgb(${behind.join(",")})`
    context.fillRect(left + wide + 66, top, 14, 10)
    context.fillStyle = ink
    context.fillText("masked", left + wide + 85, top + 6)
  }
  context.restore()
}

function picture(weight, count, colours, behind) {
  return raster(element("canvas"), count, count, (k, q) => (k > q && behind) || (colours[Math.round(weight(q, k) * 255)] ?? colours[0]))
}

// The tokens at both edges, or the words; those that are marked stand out.
function names(self, context, { cell, edge, ink, chosen, paper, written }) {
  const family = themed(self.root, "code-font", "monospace"), cut = (t) => (characters(t).length > LONGEST ? `${beginning(t, LONGEST - 1)}…` : t)
  const upright = written.some(({ text }) => characters(text).length > 1), each = written.length === self.tokens.length
  const font = each ? Math.round(Math.min(13, Math.max(LEAST_LABEL, cell - 1))) : 12
  const put = (label, along, marked) => {
    const at = edge + (middle(label) + 0.5) * cell, text = cut(label.text)
    context.save()
    context.translate(along ? at : edge - 4, along ? edge - 4 : at)
    if (along && upright) context.rotate(-Math.PI / 2)
    context.font = `${marked ? `700 ${Math.max(font, 12)}px` : `${font}px`} ${family}`
    context.textAlign = along ? (upright ? "left" : "center") : "right"
    context.textBaseline = along && !upright ? "alphabetic" : "middle"
    if (marked && each) {
      const w = Math.max(context.measureText(text).width + 4, 12), x = along ? (upright ? -2 : -w / 2) : -w + 2
      context.fillStyle = paper
      context.fillRect(x - 4, along && !upright ? -13 : -8, w + 8, 16)
    }
    context.fillStyle = marked ? chosen : ink
    context.globalAlpha = marked ? 1 : 0.75
    context.fillText(text, 0, 0)
    context.restore()
  }
  for (const along of [true, false]) {
    const at = along ? self.column : self.row, here = ({ begin, end }) => begin <= at && at <= end
    for (const label of written) if (!here(label)) put(label, along, false)
    for (const label of written) if (here(label)) put(label, along, true)
  }
}

function say(self, side) {
  const { tokens, row, column, shown, palette, cells } = self, value = shown.weight(row, column)
  const share = shown.exact ? `${(value * 100).toFixed(1)}%` : `about ${Math.round(value * 100)}%`
  write(self.said, `“${tokens[row]}” at position ${row} attends to “${tokens[column]}” at position ${column}: ${share}`)
  self.canvas.setAttribute("aria-label", `${shown.title}. Queries go down, keys to the right. ${self.said.textContent}. Arrow keys move.`)
  const letters = tokens.every((t) => characters(t).length <= 2)
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
