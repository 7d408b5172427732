// @ts-check
// The same text written with and without a KV cache, step by step: what is computed, and how the cache fills.
// See pages/output/generation/step_by_step.py.

import { brushOf } from "../../../ui/assets/shared/canvas.js"
import { element, pointIn, resize, within } from "../../../ui/assets/shared/dom.js"
import { component } from "../../../ui/assets/shared/mount.js"
import { counted, flop, memory, whole } from "../../../ui/assets/shared/numbers.js"
import { keptInLink, still } from "../../../ui/assets/shared/play.js"
import { saveTools } from "../../../ui/assets/shared/save.js"
import { createStepper } from "../../../ui/assets/shared/stepper.js"
import { sideOf } from "../../../ui/assets/shared/theme.js"

/**
 * What is sent.
 * @typedef {object} Data
 * @property {{ position: number, begin: number, computed: number, flops: number, flops_without: number, refilled: boolean }[]} steps
 * @property {string[]} labels
 * @property {string[]} without what was written without the cache
 * @property {boolean[]} same
 * @property {number} prompt tokens of it
 * @property {number} context
 * @property {number} per_position bytes
 * @property {string} letters the formula
 * @property {string} numbers the formula with numbers, T for the positions
 * @property {number} step at first
 * @property {boolean} plays by itself, where nobody has been here before
 * @property {string} name of the step in the address
 * @property {import("../../../ui/assets/shared/colours.js").Palette} palette
 */

const TICK_MS = 420
const HEIGHT = 170 // pixels of a picture
const SLOTS = 128 // positions of the cache that are drawn one by one

function panel(self, place, kind, title) {
  const root = within(place, "section", "gf-kv-panel")
  within(root, "h3", "", title)
  const canvas = within(root, "canvas", "", "", { role: "img" }), now = within(root, "p", "gf-kv-now gf-text-now"), sum = within(root, "p", "gf-kv-sum gf-text-sum")
  const made = { canvas, now, sum, text: within(root, "div", "gf-kv-text gf-text"), kind }
  canvas.addEventListener("pointermove", (event) => point(self, made, event))
  canvas.addEventListener("pointerleave", () => { self.said.textContent = self.hint })
  return made
}

function create(place, _, signal) {
  const root = within(place, "div", "gf-kv")
  /** @type {any} */
  const self = { root, data: null, hint: "" }
  self.steps = createStepper({ unit: "step", label: "Step", play: "Play: one token after another", ms: TICK_MS, moved: () => paint(self) }, signal)
  root.append(self.steps.bar)
  const pair = within(root, "div", "gf-kv-pair"), line = within(root, "div", "gf-kv-line"), key = within(line, "p", "gf-kv-key")
  pair.append(saveTools(root, () => "kv-cache-steps", () => table(self)))
  self.panels = [panel(self, pair, "with", "With the cache"), panel(self, pair, "without", "Without")]
  for (const [name, words] of [["computed", "computed now"], ["read", "read from the cache"], ["dropped", "not written yet, or no longer seen"]]) {
    within(key, "span").append(element("i", `gf-kv-${name}`), element("span", "", words))
  }
  Object.assign(self, { same: within(line, "p", "gf-kv-same"), said: within(line, "p", "gf-kv-said", self.hint), note: within(root, "p", "gf-kv-note", "", { "aria-live": "polite" }) })
  const more = within(root, "details", "gf-kv-more")
  within(more, "summary", "", "The cache, slot by slot")
  const cache = within(more, "div", "gf-kv-cache"), title = within(cache, "p", "gf-kv-title"), slots = within(cache, "div", "gf-kv-slots", "", { role: "img" })
  Object.assign(self, { title, slots, cells: [], formula: within(cache, "p", "gf-kv-formula") })
  new ResizeObserver(() => { if (self.data && root.clientWidth && root.clientWidth !== self.width) { self.width = root.clientWidth; paint(self) } }).observe(root)
  return self
}

const computedIn = (step, kind) => (kind === "with" ? step.computed : step.position - step.begin)

// The pictures ----------------------------------------------------------------------------------------------------------

function state(self, step, column, kind) {
  const { position, begin } = step
  if (column >= position) return "future"
  if (column < begin) return "dropped"
  return column >= position - computedIn(step, kind) ? "computed" : "read"
}

function layout(self, canvas) {
  const { steps, labels } = self.data
  const width = Math.max(120, canvas.parentElement.clientWidth), columns = labels.length - 1, rows = steps.length
  const cell = width / columns, high = Math.min(16, Math.max(1.5, HEIGHT / rows))
  return { width, columns, rows, cell, high, letters: cell >= 8 && labels.every((t) => t.length === 1) ? 16 : 0 }
}

function paintPanel(self, made) {
  const { steps, labels, prompt } = self.data, { canvas, kind } = made
  const { width, columns, rows, cell, high, letters } = layout(self, canvas)
  const context = brushOf(canvas, width, rows * high + letters + 4, Math.max(2, window.devicePixelRatio || 1)), gap = cell > 5 && high > 5 ? 1 : 0
  const { strong, quiet, text } = self.colours
  steps.forEach((step, row) => {
    const lit = row <= self.steps.at
    for (let column = 0; column < columns; column++) {
      const what = state(self, step, column, kind)
      if (what === "future") continue
      context.globalAlpha = !lit ? 0.1 : what === "computed" ? 1 : what === "read" ? 0.28 : 0.12
      context.fillStyle = lit && what !== "dropped" ? strong : quiet
      context.fillRect(column * cell, row * high, Math.max(cell - gap, 0.6), Math.max(high - gap, 0.6))
    }
  })
  context.globalAlpha = 1
  context.strokeStyle = text
  const { begin, position } = steps[self.steps.at], thin = high < 8 // then the line runs around the row, so that it hides none of it
  context.lineWidth = thin ? 1 : 1.5
  context.strokeRect(begin * cell + 0.5, self.steps.at * high - (thin ? 1 : 0.25), (position - begin) * cell - 1, high + (thin ? 1.5 : 0))
  if (letters) {
    context.fillStyle = text
    context.font = `${Math.min(13, cell * 1.3)}px ui-monospace, Menlo, Consolas, monospace`
    context.textAlign = "center"
    for (let i = 0; i < columns; i++) {
      context.globalAlpha = i >= position ? 0.15 : i < prompt ? 0.6 : 1
      context.fillText(labels[i], (i + 0.5) * cell, rows * high + 14)
    }
  }
}

function paintWords(self, made) {
  const { steps, labels, without, prompt } = self.data, { kind } = made, step = steps[self.steps.at]
  const mine = (s) => (kind === "with" ? s.flops : s.flops_without)
  const done = steps.slice(0, self.steps.at + 1), total = done.reduce((sum, s) => sum + computedIn(s, kind), 0)
  const computed = computedIn(step, kind), read = step.position - step.begin - computed
  made.now.textContent = `This step: ${counted(computed, "position")} computed` + (read ? `, ${whole(read)} read from the cache` : "") + `, ${flop(mine(step))}.`
  made.sum.textContent = `So far: ${counted(total, "position")}, ${flop(done.reduce((sum, s) => sum + mine(s), 0))}.`
  made.canvas.setAttribute("aria-label", `${kind === "with" ? "With" : "Without"} the cache: rows are steps, columns positions. ${made.now.textContent} ${made.sum.textContent}`)
  const words = kind === "with" ? labels : [...labels.slice(0, prompt), ...without]
  made.text.replaceChildren(...words.slice(0, prompt + self.steps.at + 1).map((word, i) => element("span", i < prompt ? "gf-kv-prompt" : i === prompt + self.steps.at ? "gf-kv-new" : "", word)))
  made.text.setAttribute("aria-label", `What it wrote ${kind === "with" ? "with" : "without"} the cache`)
}

function paintCache(self) {
  const { steps, labels, context, per_position, letters, numbers } = self.data, step = steps[self.steps.at], kept = step.position - step.begin
  self.title.textContent = `The cache after this step: ${whole(kept)} of ${whole(context)} positions filled, ${memory(kept * per_position)} of ${memory(context * per_position)}`
  self.slots.setAttribute("aria-label", self.title.textContent)
  if (context <= SLOTS) {
    resize(self.cells, context, () => within(self.slots, "i"))
    self.cells.forEach((slot, i) => {
      slot.className = i >= kept ? "" : i >= kept - step.computed ? "gf-kv-computed" : "gf-kv-read"
      slot.textContent = i < kept && labels[step.begin + i].length === 1 ? labels[step.begin + i] : ""
      slot.title = i < kept ? `slot ${i}: “${labels[step.begin + i]}”, token ${step.begin + i} of the text` : `slot ${i}: empty`
    })
    self.slots.style.setProperty("--share", "0%")
  } else {
    resize(self.cells, 0, () => within(self.slots, "i"))
    self.slots.style.setProperty("--share", `${(100 * kept) / context}%`)
  }
  self.formula.textContent = `${letters} = ${numbers.replace("T", whole(kept))} = ${whole(kept * per_position)} bytes`
  self.root.dataset.bytes = String(kept * per_position)
  self.note.classList.toggle("gf-kv-room", steps.some((s) => s.refilled)) // what comes and goes has its place kept
  self.note.textContent = step.refilled
    ? `The context of ${context} is full. The cache is emptied, and the last ${step.computed} tokens are read again: they now have positions 0 to ${step.computed - 1}, so no cached keys or values are still valid.`
    : ""
}

function paint(self) {
  const { steps, same } = self.data, step = steps[self.steps.at]
  const { attention, quiet } = self.data.palette, side = sideOf(self.root)
  self.colours = { strong: attention[side], quiet: quiet[side], text: getComputedStyle(self.root).color }
  self.root.style.setProperty("--gf-kv-strong", self.colours.strong)
  self.steps.paint(`step ${self.steps.at}: writes “${self.data.labels[step.position]}”`)
  for (const made of self.panels) {
    paintPanel(self, made)
    paintWords(self, made)
  }
  paintCache(self)
  const equal = same.slice(0, self.steps.at + 1).filter(Boolean).length, all = equal === self.steps.at + 1
  self.same.textContent = all ? `✓ Identical so far: ${equal} of ${equal} tokens.` : `✗ ${self.steps.at + 1 - equal} of ${self.steps.at + 1} tokens differ.`
  self.same.classList.toggle("gf-kv-differs", !all)
}

function point(self, made, event) {
  const [x, y] = pointIn(made.canvas, event), { cell, high, rows, columns } = layout(self, made.canvas)
  const row = Math.floor(y / high), column = Math.floor(x / cell)
  if (row < 0 || row >= rows || column < 0 || column >= columns) return
  const what = { computed: "computed", read: "key and value read from the cache", dropped: "no longer seen", future: "not yet written" }
  self.said.textContent = `Step ${row}, position ${column}, “${self.data.labels[column]}”: ${what[state(self, self.data.steps[row], column, made.kind)]}.`
}

function table(self) {
  const head = "step,position,token,token_without,window_begins,computed,computed_without,flops,flops_without,cache_positions,cache_bytes,refilled".split(",")
  return [head, ...self.data.steps.map((s, i) => {
    const kept = s.position - s.begin, words = [self.data.labels[s.position], self.data.without[i]]
    return [i, s.position, ...words, s.begin, s.computed, kept, s.flops, s.flops_without, kept, kept * self.data.per_position, s.refilled ? 1 : 0]
  })]
}

function update(self, /** @type {Data} */ data) {
  const begins = self.data === null && data.plays && keptInLink(data.name, -1) < 0 && !still()
  self.data = data
  self.steps.update({ name: data.name, step: data.step, last: data.steps.length - 1 })
  self.width = self.root.clientWidth
  paint(self)
  if (begins) self.steps.start()
}

export default component({ create, update })
