// @ts-check
// One position's logits on their way to a token: the sliders, and by its mode the table of stages or a thousand draws.
// See ui/players/sampler.py.

import { button, element, rangeInput, within } from "./shared/dom.js"
import { component } from "./shared/mount.js"
import { counted, numbers, percent, whole } from "./shared/numbers.js"
import { saveTools } from "./shared/save.js"
import { paint as paintColours } from "./shared/theme.js"
import { buildDraws, paintDraws } from "./sampler_draws.js"
import { draw, OFF, ranked, stages } from "./sampler_stages.js"

/**
 * What is sent.
 * @typedef {object} Data
 * @property {string} logits (vocab,) float32, base64
 * @property {string[] | Record<string, string>} labels (vocab,), or of a large vocabulary those that are to be read, by id
 * @property {number[]} seen ids that the penalty is for
 * @property {string} numbers (draw,) float64 in [0, 1), base64
 * @property {Record<string, any>} settings
 * @property {"stages" | "draws"} mode
 * @property {number} rows tokens that are drawn
 * @property {import("./shared/colours.js").Palette} palette
 */

const SETTLE_MS = 350 // after the last movement, the server is told
const STAGES = {
  logits: "Logits", repetition_penalty: "Penalty", temperature: "Temperature", top_k: "Top-k", top_p: "Top-p", min_p: "Min-p",
}
/** @type {[string, string, number, number, number][]} name, label, least, most, step of the slider */
const CONTROLS = [
  ["temperature", "Temperature", 0, 2, 0.01], ["top_k", "Top-k (0: all)", 0, 0, 1], ["top_p", "Top-p", 0, 1, 0.01], ["min_p", "Min-p", 0, 1, 0.01],
  ["repetition_penalty", "Repetition penalty", 0.5, 2, 0.05],
]
const READY = {
  "Unmodified": {}, "Greedy": { temperature: 0 }, "Usual (0.8)": { temperature: 0.8 }, "Nucleus 0.9": { top_p: 0.9 }, "Top-k 5": { top_k: 5 },
  "Min-p 0.1, hot": { temperature: 1.5, min_p: 0.1 },
}

function create(place, _, signal) {
  const root = within(place, "div", "gf-sampler")
  const ready = within(root, "div", "gf-sampler-ready", "", { role: "group", "aria-label": "Presets", "data-unsaved": "" })
  const body = within(root, "div", "gf-sampler-body"), controls = within(body, "div", "gf-sampler-controls"), main = within(body, "div", "gf-sampler-main")
  const self = { root, main, inputs: {}, settings: null, timer: 0, frame: 0, playing: 0, count: 1000, rows: [], send: null, mode: "", tick: null, led: false, paint: () => paint(self) }
  addEventListener("popstate", () => { self.led = true; clearTimeout(self.timer) }, { signal }) // to another address, whose settings are the server's to say
  for (const [name, values] of Object.entries(READY)) {
    ready.append(button(name, name, () => change(self, { ...OFF, ...values, penalty_last: self.settings.penalty_last, seed: self.settings.seed })))
  }
  for (const [name, label, low, high, step] of CONTROLS) {
    const box = within(controls, "label", "gf-sampler-control")
    const range = rangeInput(label, { min: low, max: high, step })
    const most = name === "temperature" || name === "repetition_penalty" ? 100 : high
    const number = element("input", "", "", { type: "number", min: low, max: most, step: "any", "aria-label": `${label}, exactly` })
    const take = (input) => () => {
      const value = Number(input.value)
      if (input.value === "" || !Number.isFinite(value)) return
      const inside = Math.min(Math.max(value, name === "repetition_penalty" ? 0.01 : 0), Number(number.max))
      change(self, { [name]: name === "top_k" ? Math.round(inside) : inside }, inside === value ? input : null)
    }
    range.oninput = take(range)
    number.oninput = take(number)
    box.append(element("span", "", label), number, range)
    self.inputs[name] = { range, number }
  }
  const last = within(controls, "label", "gf-sampler-last"), tick = within(last, "input", "", "", { type: "checkbox" })
  tick.onchange = () => change(self, { penalty_last: tick.checked })
  within(last, "span", "", "Penalty after truncation")
  self.tick = tick
  root.prepend(saveTools(root, () => `sampling-${self.mode}`, () => table(self)))
  return self
}

function change(self, values, source) {
  self.led = false
  Object.assign(self.settings, values)
  show(self, source)
  clearTimeout(self.timer)
  self.timer = setTimeout(() => tell(self), SETTLE_MS)
}

function tell(self) {
  clearTimeout(self.timer)
  self.trigger("settings", { ...self.settings })
}

function show(self, source) {
  for (const [name, { range, number }] of Object.entries(self.inputs)) {
    if (range !== source) range.value = String(self.settings[name])
    if (number !== source) number.value = String(Math.round(self.settings[name] * 1e6) / 1e6)
    range.classList.toggle("gf-off", self.settings[name] === OFF[name])
  }
  self.tick.checked = self.settings.penalty_last
  self.tick.parentElement.toggleAttribute("data-unsaved", !self.tick.checked)
  if (!self.frame) self.frame = requestAnimationFrame(() => { self.frame = 0; if (self.root.isConnected) paint(self) })
}

function paint(self) {
  const asked = JSON.stringify(self.settings)
  if (self.madeOf !== self.logits || self.madeWith !== asked) Object.assign(self, { made: stages(self.logits, self.settings, self.seen), madeOf: self.logits, madeWith: asked })
  const last = self.made[self.made.length - 1]
  self.token = draw(last.p, self.numbers[0])
  self.root.dataset.drawn = String(self.token)
  self.root.dataset.stages = JSON.stringify(self.made.map((s) => [s.name, s.kept, s.mass, s.entropy]))
  if (self.mode === "draws") paintDraws(self, last)
  else paintStages(self, last)
}

// The table of stages: a row for each of the likeliest tokens, a column for each stage.
function buildStages(self) {
  self.main.replaceChildren()
  const scroll = within(self.main, "div", "gf-sampler-scroll", "", { role: "region", tabindex: 0, "aria-label": "The likeliest tokens after each stage" })
  const grid = within(scroll, "div", "gf-sampler-grid gf-text-cells")
  const strip = within(self.main, "div", "gf-sampler-strip"), said = within(self.main, "p", "gf-sampler-said", "", { "aria-live": "polite" })
  Object.assign(self, { grid, strip, said, order: null, cells: [] })
}

function buildGrid(self, names) {
  self.grid.replaceChildren()
  self.grid.style.setProperty("--stages", names.length)
  self.cells = []
  self.heads = []
  self.grid.append(element("span", "gf-sampler-corner", "token"))
  for (const name of names) {
    const head = within(self.grid, "div", "gf-sampler-head")
    head.append(element("b", "", STAGES[name]), element("span"), element("span"))
    self.heads.push(head)
  }
  for (let row = 0; row <= self.shown.length; row++) {
    const label = within(self.grid, "span", "gf-sampler-token")
    const cells = names.map(() => {
      const cell = within(self.grid, "div", "gf-sampler-cell")
      return { cell, bar: within(cell, "i"), text: within(cell, "span") }
    })
    self.cells.push({ label, cells })
  }
  self.order = names.join()
}

function paintStages(self, last) {
  const names = self.made.map((s) => s.name)
  const shown = self.first.slice(0, self.rowsShown)
  if (!shown.includes(self.token)) shown[shown.length - 1] = self.token
  const fresh = self.order !== names.join() || self.cells.length !== shown.length + 1
  self.shown = shown
  if (fresh) buildGrid(self, names)
  let top = 0
  for (const s of self.made) for (const i of shown) top = Math.max(top, s.p[i])
  self.made.forEach((s, column) => {
    const [, a, b] = self.heads[column].children
    const off = column > 0 && self.settings[s.name] === OFF[s.name]
    self.heads[column].classList.toggle("gf-off", off)
    a.textContent = off ? "off" : `${whole(s.kept)} left`
    b.textContent = off ? "" : `≈ ${s.choices.toFixed(1)} choices`
    self.heads[column].title = off ? "off: changes nothing" : `${counted(s.kept, "token")} left, ${percent(s.mass)} of the probability kept, ${s.entropy.toFixed(2)} nats`
  })
  const gone = new Map()
  self.made.forEach((s, column) => s.removed.forEach((i) => gone.set(i, column)))
  self.shown.forEach((token, row) => {
    const { label, cells } = self.cells[row]
    label.textContent = self.word(token)
    label.title = `token ${token}, logit ${self.logits[token].toFixed(3)}`
    label.classList.toggle("gf-drawn", token === self.token)
    cells.forEach(({ cell, bar, text }, column) => {
      const s = self.made[column], at = gone.get(token)
      const out = at !== undefined && at <= column
      cell.className = "gf-sampler-cell" + (out ? (at === column ? " gf-cut" : " gf-gone") : "") + (column && self.settings[s.name] === OFF[s.name] ? " gf-off" : "")
      bar.style.width = out ? "0" : `${(100 * s.p[token]) / Math.max(top, 1e-12)}%`
      text.textContent = out ? (at === column ? `✕ ${STAGES[s.name].toLowerCase()}` : "") : (column ? "" : `${s.logits[token].toFixed(2)} · `) + percent(s.p[token])
      cell.title = out ? `removed by ${STAGES[self.made[at].name].toLowerCase()}` : `p = ${s.p[token].toPrecision(4)}, logit ${s.logits[token].toFixed(3)}`
    })
  })
  const rest = self.cells[self.shown.length], inside = new Set(self.shown)
  rest.label.textContent = `${whole(self.logits.length - self.shown.length)} others`
  rest.label.className = "gf-sampler-token gf-others"
  rest.cells.forEach(({ cell, bar, text }, column) => {
    const s = self.made[column]
    let sum = 0, left = 0
    for (let i = 0; i < s.p.length; i++) if (!inside.has(i)) { sum += s.p[i]; if (s.logits[i] !== -Infinity) left++ }
    cell.className = "gf-sampler-cell gf-others" + (column && self.settings[s.name] === OFF[s.name] ? " gf-off" : "")
    bar.style.width = `${Math.min(100, (100 * sum) / Math.max(top, 1e-12))}%`
    text.textContent = left ? percent(sum) : "none left"
    cell.title = `${left} of them left, together p = ${sum.toPrecision(4)}`
  })
  paintStrip(self, last)
}

// The draw: the probabilities side by side in the order of the table, and where u falls. The engine lays them out by token
// id: a stretch is as long in either order, and u stands as far into it.
function paintStrip(self, last) {
  const u = self.numbers[0]
  self.strip.replaceChildren()
  const begin = last.p.subarray(0, self.token).reduce((sum, p) => sum + p, 0)
  let from = 0, at = 0
  for (const i of self.first) {
    if (!last.p[i]) continue
    if (i === self.token) at = from + Math.min(Math.max(u - begin, 0), last.p[i])
    if (last.p[i] >= 0.002 || i === self.token) {
      const part = within(self.strip, "span", "gf-sampler-part" + (i === self.token ? " gf-drawn" : ""), last.p[i] > 0.03 ? self.word(i) : "")
      part.style.left = `${100 * from}%`
      part.style.width = `${100 * last.p[i]}%`
      part.title = `${self.word(i)}: ${percent(last.p[i])} of the line`
    }
    from += last.p[i]
  }
  const mark = within(self.strip, "span", "gf-sampler-mark")
  mark.style.left = `${100 * at}%`
  mark.title = `u = ${u.toFixed(4)}; by id, the drawn token spans ${begin.toFixed(4)} to ${(begin + last.p[self.token]).toFixed(4)}`
  const sure = last.kept === 1
  self.said.replaceChildren(element("b", "", `Drawn: “${self.word(self.token)}”`), document.createTextNode(
    sure ? ". Only one token is left, so nothing is random." : `. It has ${percent(last.p[self.token])} of the line, and the random point from seed ${self.settings.seed} falls there.`,
  ))
}

function table(self) {
  if (self.mode === "draws") {
    const { made, now, count, word } = self
    return [["id", "token", "probability", "drawn", "share"], ...Array.from(made.at(-1).p, (p, i) => [i, word(i), p, now[i], count ? now[i] / count : null])]
  }
  const head = ["id", "token", ...self.made.flatMap(({ name }) => [`${name}_logit`, `${name}_probability`]), "removed_by"]
  const line = (_, i) => [i, self.word(i), ...self.made.flatMap((s) => [s.logits[i], s.p[i]]), self.made.find((s) => s.removed.has(i))?.name]
  return [head, ...Array.from(self.logits, line)]
}

function update(self, /** @type {Data} */ data, fresh) {
  if (fresh || self.led) self.settings = { ...data.settings } // later they are the hand's: the server's are those of a moment ago
  self.settings.seed = data.settings.seed
  self.logits = numbers(data.logits, Float32Array)
  self.numbers = numbers(data.numbers, Float64Array)
  self.seen = new Set(data.seen)
  self.word = (i) => data.labels[i] ?? `#${i}` // a rare token is named when the server has seen it drawn
  self.first = ranked(self.logits)
  self.rowsShown = Math.min(data.rows, self.logits.length)
  const { range, number } = self.inputs.top_k
  range.max = String(Math.min(self.logits.length, 100))
  number.max = String(self.logits.length)
  paintColours(self.root, data.palette, ["output", "attention", "quiet"])
  if (self.mode !== data.mode) {
    self.mode = data.mode
    if (self.mode === "draws") buildDraws(self)
    else buildStages(self)
  }
  show(self)
}

export default component({ create, update })
