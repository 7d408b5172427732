// @ts-check
// The right side of the living map: bars for the next token, temperature, top-k, how deep the model runs, and writing.

import { fill, outlookAt, touched } from "./livemap_state.js"
import { button, element, resize, within, write } from "../../../ui/assets/shared/dom.js"
import { percent, whole } from "../../../ui/assets/shared/numbers.js"
import { playButton, still } from "../../../ui/assets/shared/play.js"

const ROWS = 8, FEW = 5, MOST = 14 // bars: on a small screen, on a narrow, on a high one

function slider(place, name, values, change) {
  const box = within(place, "label", "gf-live-slider"), said = within(box, "span", "gf-live-name"), out = within(box, "output")
  const range = Object.assign(within(box, "input"), { type: "range", ...values })
  range.oninput = () => change(Number(range.value))
  range.dataset.name = name
  return { box, said, out, range }
}

/** Makes it, once. */
export function createPanel(self, place, below) {
  self.heading = within(place, "div", "gf-live-heading")
  self.list = within(place, "div", "gf-live-bars gf-text-cells")
  self.rows = []
  self.others = within(place, "div", "gf-live-others")
  const pair = within(place, "div", "gf-live-pair")
  self.sliders = {
    depth: slider(below, "depth", { min: "0", max: "1", step: "1" }, (value) => self.does.stop(value)),
    temperature: slider(pair, "temperature", { min: "0.1", max: "2", step: "0.1" }, (value) => { self.temperature = Math.round(value * 10) / 10; self.does.changed() }),
    top_k: slider(pair, "top_k", { min: "0", max: "50", step: "1" }, (value) => { self.topK = value; self.does.changed() }),
  }
  const row = within(place, "div", "gf-live-write")
  row.dataset.unsaved = "" // no part of a picture
  self.write = row.appendChild(button("", "", () => self.does.write()))
  self.write.className = "gf-live-primary"
  self.play = row.appendChild(button("▶", "", () => self.does.play()))
}

/** Bars, sliders and what they say, of what is shown. */
export function drawBars(self) {
  const { p, panel, model } = self, found = outlookAt(p, self.depth, self.temperature, self.topK)
  write(self.heading, model.causal ? panel.next : panel.there)
  const room = self.tall ? FEW : Math.min(MOST, Math.max(ROWS, Math.floor((self.canvas.clientHeight - 142) / 23)))
  const count = found ? Math.min(room, found.tokens.length) : 0
  resize(self.rows, count, () => {
    const made = element("button"), token = within(made, "span", "gf-live-token"), field = within(made, "span", "gf-live-field"), bar = within(field, "i"), share = within(made, "span", "gf-live-share")
    made.onkeydown = (event) => walk(self, made, event)
    self.list.append(made)
    const row = { made, token, bar, share, id: -1, remove: () => made.remove() }
    made.onclick = (event) => { if (!touched(event)) self.does.follow({ kind: "bar", token: row.id }) }
    made.onpointerenter = made.onfocus = () => self.does.point({ kind: "bar", token: row.id })
    made.onpointerleave = made.onblur = () => self.does.point(null)
    return row
  })
  if (!self.rows.some(({ made }) => made === document.activeElement)) self.rows.forEach(({ made }, i) => { made.tabIndex = i ? -1 : 0 }) // one stop of the Tab key
  if (found) {
    const most = Math.max(found.p[0], 1e-9)
    self.rows.forEach((row, i) => {
      row.id = found.tokens[i]
      write(row.token, p.words[row.id] ?? `#${row.id}`)
      row.bar.style.width = `${(100 * found.p[i]) / most}%`
      write(row.share, percent(found.p[i]))
      row.made.classList.toggle("gf-cut", found.p[i] === 0)
    })
    let shown = 0
    for (let i = 0; i < count; i++) shown += found.p[i]
    write(self.others, `${fill(panel.others, { count: whole(model.vocab - count) })} ${percent(Math.max(0, 1 - shown))}`)
  }
  self.others.hidden = !found
  self.list.dataset.chances = found ? Array.from(found.p.subarray(0, count), (x) => x.toFixed(5)).join(" ") : ""
  settings(self)
}

// Up and down from bar to bar.
function walk(self, made, event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], next = step && self.rows[self.rows.findIndex((row) => row.made === made) + step]
  if (!step) return
  event.preventDefault()
  if (!next) return
  for (const row of self.rows) row.made.tabIndex = row === next ? 0 : -1
  next.made.focus()
}

function settings(self) {
  const { p, panel, model, sliders } = self
  const at = self.depth === 0 ? panel.embedding : fill(self.depth === p.layers ? panel.output : panel.block, { block: self.depth - 1 })
  const rows = [
    [sliders.depth, panel.stopped, at, self.depth],
    [sliders.temperature, panel.temperature, self.temperature.toFixed(1), self.temperature],
    [sliders.top_k, panel.top_k, self.topK ? String(self.topK) : panel.all, self.topK],
  ]
  sliders.depth.range.max = String(p.layers)
  sliders.top_k.range.max = String(Math.min(50, p.outlook?.kept ?? 50))
  for (const [made, name, said, value] of rows) {
    write(made.said, name)
    write(made.out, said)
    made.range.value = String(value)
    made.range.setAttribute("aria-valuetext", said)
    made.box.hidden = !model.speaks
  }
  const writes = model.speaks && model.causal
  self.write.disabled = self.play.disabled = !writes
  write(self.write, panel.write)
  self.write.setAttribute("aria-label", panel.write)
  self.write.title = writes ? "" : model.speaks ? panel.filler : panel.silent
  playButton(self.play, self.playing, panel.on)
}

/** The drawn token leaves its bar and becomes a lane. */
export function fly(self, wrote) {
  if (still() || !self.root.animate) return
  const row = self.rows.find(({ id }) => id === wrote.token), from = (row?.made ?? self.write).getBoundingClientRect(), stage = self.canvas.getBoundingClientRect(), root = self.root.getBoundingClientRect()
  const { g, p, tall } = self, c = g.lane(p.lanes - 1)
  const to = tall ? { x: stage.left + c, y: stage.top + g.labels - 20 } : { x: stage.left + g.labels - 40, y: stage.top + c - 10 }
  const token = element("span", "gf-live-flying gf-text", wrote.word)
  self.root.append(token)
  const at = (x, y) => `translate(${x - root.left}px, ${y - root.top}px)`
  const flight = token.animate(
    [{ transform: at(from.left, from.top - (row ? 4 : 40)), opacity: 1 }, { transform: at((from.left + to.x) / 2, Math.min(from.top, to.y) - 50), opacity: 1, offset: 0.5 }, { transform: at(to.x, to.y), opacity: 0.2 }],
    { duration: self.playing ? 350 : 600, easing: "ease-in-out" },
  )
  flight.onfinish = flight.oncancel = () => token.remove()
}
