// @ts-check
// The living map on its canvas. Everything is drawn along and across the lanes; on a narrow page the two change places.

import { raster } from "../../../ui/assets/shared/canvas.js"
import { ramp } from "../../../ui/assets/shared/colours.js"
import { element } from "../../../ui/assets/shared/dom.js"
import { boxOf, fitted, guessed, weight } from "./livemap_state.js"

/**
 * Strips as a picture: a column for each depth, below each other the cells of all lanes.
 * @param {Int8Array | null} strips (column, lane, cell)
 */
function texture(strips, columns, rows, colours) {
  return strips && raster(element("canvas"), columns, rows, (x, y) => colours[strips[x * rows + y] + 127])
}

/** What is painted of a picture once. */
export function textures(p, palette, side) {
  const colours = ramp(palette, side, 255, "div"), rows = p.lanes * p.cells
  return {
    stream: texture(p.stream, p.layers + 1, rows, colours), middle: texture(p.middle, p.layers, rows, colours),
    attention: texture(p.attention, p.layers, rows, colours), feedforward: texture(p.feedforward, p.layers, rows, colours),
    before: texture(p.norms.attention, p.layers, rows, colours), between: texture(p.norms.feedforward, p.layers, rows, colours), final: texture(p.norms.final, 1, rows, colours),
    entering: texture(p.entering, 2, rows, colours),
  }
}

/**
 * Draws all of it. `view` is { p, g, tall, textures, colours, font, lane, head, depth, hover, keyed, sweep, fresh }: `sweep` (0 to 1) is
 * how far the lanes from `fresh` on have come.
 * @param {CanvasRenderingContext2D} brush
 * @param {any} view
 * @param {number} ratio of the screen's pixels
 */
export function paint(brush, view, ratio) {
  const { g, tall } = view
  const across = tall ? [0, ratio, ratio, 0, 0, 0] : [ratio, 0, 0, ratio, 0, 0]
  brush.setTransform(1, 0, 0, 1, 0, 0)
  brush.clearRect(0, 0, brush.canvas.width, brush.canvas.height)
  brush.setTransform(.../** @type {[number, number, number, number, number, number]} */ (across))
  brush.imageSmoothingEnabled = false
  const pen = {
    ...view, brush, ratio, across,
    reach: view.sweep >= 1 ? Infinity : g.labels + view.sweep * (g.words[0] - g.labels),
  }
  frame(pen)
  for (let lane = 0; lane < view.p.lanes; lane++) drawLane(pen, lane)
  if (view.p.patterns) arcs(pen)
  if (view.p.neurons) neurons(pen)
  if (g.place) places(pen)
  cursor(pen)
  outline(pen)
  labels(pen)
}

// The open block, and where the others begin.
function frame({ brush, g, p, colours }) {
  const low = g.lane(p.lanes - 1) + g.pitch / 2 + 4
  brush.fillStyle = colours.panel
  brush.beginPath()
  brush.roundRect(g.from, 2, g.to - g.from, Math.max(low, g.across - 2) - 2, 10)
  brush.fill()
}

function drawLane(pen, lane) {
  const { brush, g, p, colours, textures: made } = pen, c = g.lane(lane)
  const reach = lane >= pen.fresh ? pen.reach : Infinity
  brush.save()
  if (reach !== Infinity) {
    brush.beginPath()
    brush.rect(0, c - g.pitch, reach, 2 * g.pitch)
    brush.clip()
  }
  brush.globalAlpha = 0.5
  brush.strokeStyle = colours.residual
  brush.lineWidth = lane === pen.lane ? 2 : 1
  brush.beginPath()
  brush.moveTo(g.labels, c)
  brush.lineTo(g.words[0] - 4, c)
  brush.stroke()
  brush.globalAlpha = 1
  const strip = (image, column, [from, to]) => image && brush.drawImage(image, column, lane * p.cells, 1, p.cells, from, c - g.thick / 2, to - from, g.thick)
  g.strips.forEach((range, depth) => strip(made.stream, depth, range))
  for (const [name, range] of /** @type {const} */ ([["before", g.before], ["attention", g.attention], ["middle", g.middle], ["between", g.between], ["feedforward", g.feedforward]])) if (range) strip(made[name], g.focus, range)
  g.entering.forEach((range, i) => strip(made.entering, i, range))
  if (g.final) strip(made.final, 0, g.final)
  for (const range of [g.before, g.between, g.final]) if (range) framed(brush, range, c, g.thick, colours.norm)
  if (g.entering.length) framed(brush, g.entering[1], c, g.thick, colours.position)
  for (const [there, colour, [, from], [to]] of [[made.attention, colours.attention, g.attention, made.middle ? g.middle : g.feedforward], [made.feedforward, colours.feedforward, g.feedforward, g.strips[g.focus + 1]]]) {
    if (there && g.thick >= 6) plus(brush, Math.min((from + to) / 2, from + 8), c, colour)
  }
  brush.restore()
}

// What a strip is of, where that is no part of the stream and nothing that is added to it: a line in the part's colour.
function framed(brush, [from, to], c, thick, colour) {
  brush.strokeStyle = colour
  brush.lineWidth = 1
  brush.strokeRect(from, c - thick / 2, to - from, thick)
}

// Where a token stands, as attention is told: a hand that turns, or what the token before gets added, the longer the less.
function places({ brush, g, p, head, colours }) {
  const [from, to] = /** @type {[number, number]} */ (g.place), middle = (from + to) / 2, radius = Math.min((to - from) / 2, g.thick / 2)
  brush.strokeStyle = brush.fillStyle = colours.position
  brush.lineWidth = 1.5
  for (let lane = 0; lane < p.lanes; lane++) {
    const c = g.lane(lane)
    brush.beginPath()
    if (p.turned) {
      const angle = (p.turned[lane] * Math.PI) / 180
      brush.arc(middle, c, radius, 0, 7)
      brush.moveTo(middle, c)
      brush.lineTo(middle + radius * Math.cos(angle), c - radius * Math.sin(angle))
      brush.stroke()
    } else {
      const [near, far] = [0, 1].map((i) => p.added[(head * p.lanes + lane) * 2 + i]), share = far ? Math.min(1, Math.abs(near / far)) : 0
      brush.moveTo(from, c + g.thick / 2)
      brush.lineTo(to, c + g.thick / 2)
      brush.lineTo(to, c + g.thick / 2 - g.thick * Math.max(0.1, share))
      brush.fill()
    }
  }
}

function plus(brush, s, c, colour) {
  brush.strokeStyle = colour
  brush.lineWidth = 2
  brush.beginPath()
  brush.moveTo(s - 4, c)
  brush.lineTo(s + 4, c)
  brush.moveTo(s, c - 4)
  brush.lineTo(s, c + 4)
  brush.stroke()
}

// A line around what is pointed at; a thick one in the page's colour where the keyboard is.
function outline({ brush, g, p, hover, colours, keyed }) {
  const box = hover && boxOf(p, g, hover)
  if (!box) return
  const [from, to, low, high] = box, by = keyed ? 3 : 1
  brush.lineWidth = keyed ? 5 : 1.5
  brush.strokeStyle = keyed ? colours.paper : colours.text
  if (!keyed && ["head", "token", "guess", "block", "earlier"].includes(hover.kind)) return // these answer in other ways
  brush.strokeRect(from - by, low - by, to - from + 2 * by, high - low + 2 * by)
  if (!keyed) return
  brush.lineWidth = 2.5
  brush.strokeStyle = colours.focus
  brush.strokeRect(from - by, low - by, to - from + 2 * by, high - low + 2 * by)
}

// Who looks at whom: thick where much weight goes; the chosen lane's own in full colour.
function arcs(pen) {
  const { brush, g, p, colours } = pen, [from, to] = g.arcs, middle = (from + to) / 2
  brush.strokeStyle = colours.attention
  brush.lineCap = "round"
  for (const own of [false, true]) for (let lane = 0; lane < p.lanes; lane++) {
    if ((lane === pen.lane) !== own || (lane >= pen.fresh && pen.reach < to)) continue
    for (let key = p.earlier ? -1 : 0; key < p.lanes; key++) {
      const w = weight(p, g.focus, pen.head, lane, key)
      if (w < 0.02) continue
      brush.globalAlpha = own ? 0.25 + 0.75 * w : 0.3 * w
      brush.lineWidth = (own ? 1 : 0.7) + Math.min(6, g.thick / 3) * w
      brush.beginPath()
      brush.moveTo(from, g.lane(key))
      brush.bezierCurveTo(middle, g.lane(key), middle, g.lane(lane), to, g.lane(lane))
      brush.stroke()
    }
  }
  brush.globalAlpha = 1
  for (let lane = 0; lane < p.lanes; lane++) {
    brush.fillStyle = lane === pen.lane ? colours.attention : colours.residual
    for (const s of [from, to]) {
      brush.beginPath()
      brush.arc(s, g.lane(lane), lane === pen.lane ? 3.5 : 2, 0, 7)
      brush.fill()
    }
  }
}

function neurons({ brush, g, p, colours, reach, fresh }) {
  const each = p.neurons.length / p.layers / p.lanes, [from, to] = g.neurons, wide = (to - from) / each
  const begin = g.focus * p.lanes * each
  const most = Math.max(p.loud[g.focus], 1e-9)
  for (let lane = 0; lane < p.lanes; lane++) {
    if (lane >= fresh && reach < to) continue
    for (let i = 0; i < each; i++) {
      const value = p.active[begin + lane * each + i], high = Math.max(1.5, Math.min(1, Math.abs(value) / most) * g.thick)
      const s = from + i * wide, low = g.lane(lane) + g.thick / 2
      brush.fillStyle = brush.strokeStyle = colours.feedforward
      brush.lineWidth = 1
      if (value >= 0) brush.fillRect(s + 1, low - high, wide - 3, high)
      else brush.strokeRect(s + 1.5, low - high + 0.5, wide - 4, Math.max(1, high - 1))
    }
  }
}

// What has not run where the model was stopped is faint.
function cursor({ brush, g, p, depth, colours }) {
  if (depth >= p.layers) return
  const [, s] = g.strips[depth]
  brush.globalAlpha = 0.72
  brush.fillStyle = colours.paper
  brush.fillRect(s + 1, 0, g.words[0] - s - 4, g.across)
  brush.globalAlpha = 1
  brush.strokeStyle = colours.output
  brush.lineWidth = 2
  brush.beginPath()
  brush.moveTo(s + 1, 2)
  brush.lineTo(s + 1, g.across - 2)
  brush.stroke()
}

// Text is never drawn sideways: it is put where its place lies on the screen.
function labels(pen) {
  const { brush, g, p, tall, ratio, colours, font, across } = pen
  brush.setTransform(ratio, 0, 0, ratio, 0, 0)
  brush.textBaseline = "middle"
  const size = Math.max(10, Math.min(15, g.pitch * 0.66))
  for (let lane = 0; lane < p.lanes; lane++) {
    const own = lane === pen.lane, word = p.words[p.ids[lane]] ?? "?", c = g.lane(lane), reached = lane < pen.fresh || pen.reach === Infinity
    brush.fillStyle = own ? colours.attention : colours.text
    brush.font = `${own ? 700 : 500} ${size}px ${font}`
    if (tall) turned(brush, c, g.labels - 8, () => write(brush, word, 0, 0, g.labels - 12, "left"))
    else {
      write(brush, word, g.labels - 8, c, g.labels - 54, "right")
      brush.fillStyle = colours.faint
      brush.font = `400 ${Math.max(9, size - 4)}px ${font}`
      write(brush, String(p.ids[lane]), 2, c, 40, "left")
    }
    const [first] = guessed(p, pen.depth, lane)
    if (!first || !reached) continue
    const last = lane === p.asked
    brush.fillStyle = last ? colours.output : colours.text
    brush.globalAlpha = last ? 1 : 0.45 + 0.55 * first[1]
    brush.font = `${last ? 700 : 500} ${last ? size + 1 : size}px ${font}`
    const said = `${p.words[first[0]] ?? "?"}`, share = `${Math.round(100 * first[1])}%`
    if (tall) turned(brush, c, g.words[0] + 10, () => write(brush, said, 0, 0, g.words[1] - g.words[0] - 14, "right", ` ${share}`))
    else {
      write(brush, said, g.words[0] + 6, c, g.words[1] - g.words[0] - 46, "left")
      brush.font = `400 ${Math.max(9, size - 2)}px ${font}`
      write(brush, share, g.words[1] - 2, c, 38, "right")
    }
    brush.globalAlpha = 1
  }
  heads(pen)
  brush.setTransform(.../** @type {[number, number, number, number, number, number]} */ (across))
}

function turned(brush, x, y, draw) {
  brush.save()
  brush.translate(x, y)
  brush.rotate(-Math.PI / 2)
  draw()
  brush.restore()
}

// What stands above the lanes of a wide page: names of the columns.
function heads({ brush, g, p, tall, colours, font, marks }) {
  brush.fillStyle = colours.faint
  brush.font = `500 11px ${font}`
  if (p.earlier && !tall) write(brush, marks.earlier, g.labels - 8, g.lane(-1), g.labels - 8, "right")
  if (p.earlier && tall) turned(brush, g.lane(-1), g.labels - 8, () => write(brush, marks.earlier, 0, 0, g.labels - 8, "left"))
  if (tall) return
  const y = g.top - 10
  const first = g.focus === 0 // then the open block leaves no room to the right
  const own = !g.entering.length && first
  write(brush, marks.embed, own ? g.strips[0][1] - 2 : g.labels, y, 60, own ? "right" : "left")
  write(brush, marks.tokens, g.labels - (own ? 24 : 8), y, 100, "right")
  write(brush, marks.guesses, g.words[0] + 6, y, g.words[1] - g.words[0], "left")
  const every = g.blocks.length > 8 ? 5 : 1
  g.blocks.forEach(([from, to], layer) => { if (layer !== g.focus && layer % every === 0 && (layer > 0 || every === 1) && Math.abs(layer - g.focus) > (every > 1 ? 1 : 0)) write(brush, String(layer), (from + to) / 2, y, 40, "center") })
  brush.fillStyle = colours.text
  brush.font = `600 12px ${font}`
  write(brush, marks.block, g.from + 10, 13, g.to - g.from - 20, "left")
}

function write(brush, text, x, y, room, align, number = "") {
  brush.textAlign = align
  brush.fillText(fitted(text, number, room, (shown) => brush.measureText(shown).width), x, y)
}
