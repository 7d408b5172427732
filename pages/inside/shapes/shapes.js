// @ts-check
// A forward pass as a list of steps that can be walked. All steps are here, so walking asks the server for pictures only.
// See pages/inside/shapes/forward_pass.py.

import { element, within } from "../../../ui/assets/shared/dom.js"
import { target } from "../../../ui/assets/shared/keys.js"
import { component } from "../../../ui/assets/shared/mount.js"
import { memory, whole } from "../../../ui/assets/shared/numbers.js"
import { asker } from "../../../ui/assets/shared/play.js"
import { toolbar } from "../../../ui/assets/shared/save.js"
import { createStepper } from "../../../ui/assets/shared/stepper.js"
import { paint } from "../../../ui/assets/shared/theme.js"

/**
 * What is sent.
 * @typedef {object} Data
 * @property {Record<string, any[]>} groups steps of the input, a block, a later block, the output
 * @property {number} layers
 * @property {string} title
 * @property {Record<string, string>} parts what the parts are called
 * @property {string} source what the steps are of
 * @property {number} shown the step that the page has drawn
 * @property {import("../../../ui/assets/shared/colours.js").Palette} palette
 * @property {string} alt
 */

const PLAY_MS = 700

function create(parent, _, signal) {
  const root = within(parent, "div", "gf-walk gf-saves")
  const strip = element("div", "gf-walk-strip", "", { "aria-hidden": "true" }) // the list says the same
  const card = element("div", "gf-walk-card"), list = element("div", "gf-walk-list", "", { role: "listbox", tabindex: 0 })
  /** @type {any} */
  const self = { root, strip, card, list, index: 0, open: false, rows: new Map(), text: "", order: [], send: null, question: null }
  const moved = () => go(self, self.order[self.steps.at])
  self.steps = createStepper({ unit: "step", label: "Step of the forward pass", play: "Play", ms: PLAY_MS, moved }, signal)
  root.append(toolbar(root, () => null, {}), strip, self.steps.bar, list, card)
  self.question = asker(() => self.index, (step) => self.trigger("step", step), () => self.again())
  list.addEventListener("keydown", (event) => {
    const to = target(event.key, self.steps.at, self.steps.last)
    if (to === undefined || event.target !== list) return
    event.preventDefault()
    self.steps.to(to)
  })
  return self
}

// The global index runs over the input's steps, each block's, the output's -------------------------------------------------

function sizes(self) {
  const { groups, layers } = self.data
  return [groups.input.length, groups.block.length, groups.output.length, layers]
}

function place(self, index) {
  const [a, b, , layers] = sizes(self)
  if (index < a) return { stage: "input", block: null, row: index }
  if (index < a + b * layers) return { stage: "block", block: Math.floor((index - a) / b), row: (index - a) % b }
  return { stage: "output", block: null, row: index - a - b * layers }
}

function stepAt(self, index) {
  const { stage, block, row: at } = place(self, index)
  if (stage !== "block") return self.data.groups[stage][at]
  const raw = (block > 0 ? self.data.groups.later : self.data.groups.block)[at]
  const named = (name) => name.replace("@-.", `blocks.${block - 1}.`).replace("@.", `blocks.${block}.`)
  return { ...raw, name: named(raw.name), inputs: raw.inputs.map((i) => ({ ...i, name: named(i.name) })), weights: raw.weights.map((w) => ({ ...w, name: named(w.name) })) }
}

function walked(self) {
  // Folded blocks are alike, so the walk passes over them.
  const [a, b, c, layers] = sizes(self)
  const shown = self.open || layers === 1 ? layers : 1
  const range = (from, to) => Array.from({ length: to - from }, (_, i) => from + i)
  return [...range(0, a + b * shown), ...range(a + b * layers, a + b * layers + c)]
}

function go(self, index) {
  self.index = index
  show(self)
  self.question.ask()
}

// Drawing ------------------------------------------------------------------------------------------------------------------

function chips(shape) {
  const line = element("span", "gf-axes gf-chipped")
  for (const [axis, size] of shape) {
    const chip = within(line, "span", "gf-axis")
    chip.style.setProperty("--axis", `var(--gf-axis-${axis.replace(/^[^a-z]*/, "").split(/[^a-z_]/)[0]}, var(--gf-axis-batch))`)
    chip.append(element("i", "", axis), element("b", "", whole(size)))
  }
  return line
}

function row(self, index) {
  const step = stepAt(self, index)
  const node = element("div", "gf-step", "", { role: "option", id: `gf-step-${self.key}-${index}` })
  node.style.setProperty("--part", `var(--gf-${step.part})`)
  within(node, "div", "gf-step-head").append(element("code", "", step.name.replace(/^blocks\.\d+\./, "")), chips(step.output))
  node.title = step.words
  node.onclick = () => { self.steps.pause(); go(self, index) }
  self.rows.set(index, node)
  return node
}

function heading(text, fold) {
  const node = element(fold ? "button" : "div", "gf-group")
  if (fold) {
    node.setAttribute("role", "option") // all that a list of options may hold
    node.onclick = fold.toggle
  }
  node.append(element("b", "", (fold ? (fold.open ? "▾ " : "▸ ") : "") + text))
  return node
}

function build(self) {
  const { layers } = self.data
  const [a, b, c] = sizes(self)
  self.rows.clear()
  self.list.replaceChildren()
  self.order = walked(self)
  const add = (from, count) => { for (let i = from; i < from + count; i++) self.list.appendChild(row(self, i)) }
  if (a) { self.list.appendChild(heading("Input")); add(0, a) }
  if (b) { self.list.appendChild(heading(self.data.title)); add(a, b) }
  if (b && layers > 1) {
    const which = layers === 2 ? "Block 1: the same" : `Blocks 1–${layers - 1}: the same`
    const toggle = () => { self.open = !self.open; if (!self.open && place(self, self.index).block > 0) go(self, a + place(self, self.index).row); build(self); show(self) }
    self.list.appendChild(heading(which, { open: self.open, toggle }))
    const current = Math.max(1, place(self, self.index).block ?? 1)
    for (let i = 1; self.open && i < layers; i++) {
      const unfold = () => { go(self, a + b * i); self.list.focus() }
      self.list.appendChild(heading(`Block ${i}`, { open: i === current, toggle: unfold }))
      if (i === current) add(a + b * i, b)
    }
  }
  self.drawnBlock = place(self, self.index).block
  if (c) { self.list.appendChild(heading("Output")); add(a + b * layers, c) }
  drawStrip(self)
}

function drawStrip(self) {
  // Neighbours of one part become one station; the block's stations stand once, in a frame.
  self.strip.replaceChildren()
  self.stations = []
  const [a, b, , layers] = sizes(self)
  for (const [stage, from] of [["input", 0], ["block", a], ["output", a + b * layers]]) {
    const rows = self.data.groups[stage]
    if (!rows.length) continue
    const frame = element("div", `gf-stage gf-stage-${stage}`)
    if (stage === "block" && layers > 1) frame.appendChild(element("span", "gf-times", `× ${whole(layers)}`))
    rows.forEach((step, i) => {
      const last = self.stations[self.stations.length - 1]
      if (last && last.stage === stage && last.part === step.part) return void last.rows.push(i)
      const node = element("button", "gf-station", step.name === "mask" ? "mask" : self.data.parts[step.part], { tabindex: -1 })
      node.style.setProperty("--part", `var(--gf-${step.part})`)
      node.onclick = () => { self.steps.pause(); const block = place(self, self.index).block ?? 0; go(self, from + i + (stage === "block" && self.open ? block * b : 0)) }
      frame.appendChild(node)
      self.stations.push({ node, stage, part: step.part, rows: [i] })
    })
    self.strip.appendChild(frame)
  }
}

function show(self) {
  const at = place(self, self.index)
  if (at.block > 0 && (!self.open || at.block !== self.drawnBlock)) { self.open = true; build(self) }
  const step = stepAt(self, self.index)
  self.steps.at = self.order.indexOf(self.index)
  self.steps.last = self.order.length - 1
  self.steps.paint(`${self.steps.at + 1} / ${self.order.length}`)
  self.steps.slider.setAttribute("aria-valuetext", `step ${self.steps.at + 1} of ${self.order.length}: ${step.name}, ${step.words}`)
  for (const [index, node] of self.rows) {
    node.classList.toggle("gf-now", index === self.index)
    node.setAttribute("aria-selected", String(index === self.index))
  }
  for (const { node, stage, rows } of self.stations) node.classList.toggle("gf-now", stage === at.stage && rows.includes(at.row))
  const node = self.rows.get(self.index)
  if (node) {
    self.list.setAttribute("aria-activedescendant", node.id)
    const [top, low] = [node.offsetTop - self.list.offsetTop, node.offsetTop - self.list.offsetTop + node.offsetHeight]
    if (top < self.list.scrollTop + 40 || low > self.list.scrollTop + self.list.clientHeight - 20) self.list.scrollTop = top - self.list.clientHeight / 2
  }
  drawCard(self, step)
}

function drawCard(self, step) {
  const { card } = self
  card.style.setProperty("--part", `var(--gf-${step.part})`)
  const title = element("div", "gf-card-title")
  title.append(element("code", "", step.name), element("span", "", step.words))
  const table = element("div", "gf-card-shapes")
  for (const input of step.inputs) table.append(element("span", "gf-card-name", input.name.replace(/^blocks\.\d+\./, "")), chips(input.axes))
  for (const weight of step.weights) table.append(element("span", "gf-card-name", weight.name.replace(/^blocks\.\d+\./, "")), element("span", "gf-card-weight", `learned, ${weight.sizes.map(whole).join(" × ")}`))
  for (const weight of step.shared) table.append(element("span", "gf-card-name", weight), element("span", "gf-card-weight", "learned, already counted: 0 here"))
  table.append(element("span", "gf-card-name gf-arrow", "→"), chips(step.output))
  const flops = [step.products && `${whole(step.products)} in products`, step.elementwise && `${whole(step.elementwise)} elementwise`].filter(Boolean).join(" + ") || "0"
  const facts = element("div", "gf-card-facts")
  for (const [name, value] of [["parameters", whole(step.parameters)], ["FLOPs", flops], ["output", step.view ? `${memory(step.bytes)}, a view` : memory(step.bytes)]]) {
    within(facts, "span").append(element("i", "", name), element("b", "", value))
  }
  card.replaceChildren(title, table, facts)
}

function update(self, /** @type {Data} */ data, fresh, key) {
  self.key = key.replace(/\W/g, "")
  self.data = data
  const side = paint(self.root, data.palette), { question } = self
  self.list.setAttribute("aria-label", data.alt)
  const changed = fresh || self.source !== data.source
  if (changed) {
    self.steps.pause()
    self.source = data.source
    question.forget()
    self.index = data.shown
    self.open = (place(self, data.shown).block ?? 0) > 0
    build(self)
  }
  if (question.answered(data.shown)) self.index = data.shown
  if (changed || self.drawnSide !== side || self.last !== self.index) show(self)
  self.drawnSide = side
  self.last = self.index
}

export default component({ create, update })
