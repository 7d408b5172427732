// @ts-check
// Points of a figure that a hand or the arrow keys move: a button lies over each. Their trace says so in its `meta.moves`; see
// pages/lab/after/in_context_learning.py. The server is sent all points as one text, "x y, x y", and draws them where they are then.

import { alone, resize, within } from "./shared/dom.js"
import { asker } from "./shared/play.js"

/** @typedef {{ step: number, far: number, reach: number, name: string, hint: string }} Moves how far a key moves a point, and how far with Shift */
/** @typedef {{ range: number[], _offset: number, _length: number }} Axis as Plotly has laid it out */
/** @typedef {[number, number]} Point */

const HAND_PX = 4 // a hand that moves less has clicked
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }

/** A place as near as a point can stand: on a multiple of the step, and no further out than `reach`. */
export const snapped = (/** @type {number} */ value, /** @type {Moves} */ { step, reach }) =>
  Number((Math.max(-reach, Math.min(reach, Math.round(value / step) * step)) || 0).toFixed(6))

/** Where a value is on an axis, in pixels of the figure, and back. */
export const pixel = (/** @type {Axis} */ { range: [low, high], _offset, _length }, /** @type {number} */ value) =>
  _offset + ((value - low) / (high - low)) * _length
export const valueAt = (/** @type {Axis} */ { range: [low, high], _offset, _length }, /** @type {number} */ at) =>
  low + ((at - _offset) / _length) * (high - low)

/**
 * Where a key moves a point; undefined for a key that moves none.
 * @param {Point} point
 * @param {{ key: string, shiftKey: boolean }} event
 * @param {Moves} moves
 * @returns {Point | undefined}
 */
export function moved([x, y], { key, shiftKey }, moves) {
  const by = ARROWS[key], size = shiftKey ? moves.far : moves.step
  return by && [snapped(x + by[0] * size, moves), snapped(y + by[1] * size, moves)]
}

export const written = (/** @type {Point[]} */ points) => points.map((point) => point.join(" ")).join(", ")

/** The points of a trace, from the text that each sends when it is clicked. */
export const read = (/** @type {string[]} */ texts) => texts.map((text) => /** @type {Point} */ (text.split(" ").map(Number)))

/** The trace of a figure whose points move, if there is one; in a saved file nobody would draw what follows. */
export const movable = (/** @type {any} */ message) => !alone() && message.figure.data.find((/** @type {any} */ trace) => trace.meta?.moves)

/**
 * The handles of a figure. `received` says that a message has come, `place` that the figure has been drawn.
 * @param {HTMLElement} root
 * @param {HTMLElement} figure Plotly's
 * @param {(text: string) => void} send
 */
export function handles(root, figure, send) {
  const self = {
    layer: within(root, "div", "gf-points"), cells: /** @type {HTMLButtonElement[]} */ ([]), points: /** @type {Point[]} */ ([]),
    moves: /** @type {Moves} */ ({}), message: /** @type {any} */ (null), holding: false, axes: () => axesOf(figure),
  }
  const question = asker(() => written(self.points), send, () => { received(self.message); place() })
  const change = (/** @type {Point[]} */ points) => {
    self.points = points
    lay(self)
    question.ask()
  }
  const make = (/** @type {number} */ i) => handle(self, i, change)
  const place = () => { if (self.axes()) lay(self) }
  function received(/** @type {any} */ message) {
    const trace = movable(message), texts = trace?.customdata ?? []
    self.message = message
    self.moves = trace?.meta.moves ?? self.moves
    if (!question.answered(texts.join(", "))) return // it was drawn before the last move
    if (!self.holding) self.points = read(texts)
    resize(self.cells, self.points.length, make)
  }
  return { received, place }
}

/** The axes as Plotly has laid them out; pixels count from the top of a figure, so the y axis is turned round. */
function axesOf(figure) {
  const layout = figure._fullLayout
  if (!layout) return null
  const { xaxis, yaxis, width, height } = layout, [low, high] = yaxis.range
  return { x: xaxis, y: { range: [high, low], _offset: yaxis._offset, _length: yaxis._length }, width, height }
}

function lay(self) {
  const axes = self.axes()
  self.points.forEach(([x, y], i) => {
    const cell = self.cells[i], where = `x ${x}, y ${y}`.replaceAll("-", "−")
    Object.assign(cell.style, { left: `${pixel(axes.x, x)}px`, top: `${pixel(axes.y, y)}px` })
    cell.setAttribute("aria-label", `${self.moves.name} ${i + 1}: ${where}. ${self.moves.hint}`)
    cell.title = `${where}. ${self.moves.hint}`
  })
}

function handle(self, i, change) {
  const cell = within(self.layer, "button", "gf-point")
  let from = /** @type {Point | null} */ (null), dragged = false
  const put = (point) => change(self.points.map((each, at) => (at === i ? point : each)))
  const remove = () => { // all but the last
    if (self.points.length < 2) return
    if (i === self.points.length - 1) self.cells[i - 1].focus()
    self.cells.pop()?.remove()
    change(self.points.filter((_, at) => at !== i))
  }
  const release = () => {
    from = null
    self.holding = false
  }
  cell.addEventListener("pointerdown", (event) => {
    if (event.button) return
    cell.setPointerCapture(event.pointerId)
    from = [event.clientX, event.clientY]
    dragged = false
    self.holding = true
  })
  cell.addEventListener("pointermove", (event) => {
    if (!from || (!dragged && Math.hypot(event.clientX - from[0], event.clientY - from[1]) < HAND_PX)) return
    dragged = true
    const { x, y, width, height } = self.axes(), box = self.layer.getBoundingClientRect() // larger on a stage
    const across = ((event.clientX - box.left) / box.width) * width, down = ((event.clientY - box.top) / box.height) * height
    put([snapped(valueAt(x, across), self.moves), snapped(valueAt(y, down), self.moves)])
  })
  cell.addEventListener("pointerup", release)
  cell.addEventListener("pointercancel", () => {
    release()
    dragged = false // no click follows
  })
  cell.addEventListener("click", () => {
    if (!dragged) remove()
    dragged = false
  })
  cell.addEventListener("keydown", (event) => {
    const to = moved(self.points[i], event, self.moves)
    if (!to && event.key !== "Delete" && event.key !== "Backspace") return
    event.preventDefault()
    event.stopPropagation() // on a stage, arrows lead to other scenes
    if (to) put(to)
    else remove()
  })
  return cell
}
