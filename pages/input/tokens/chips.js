// @ts-check
// One text as several tokenizers cut it. A token that is pointed at, or reached by the arrow keys, tells its id and
// bytes, and lights up what the others make of the same place. See pages/input/tokens/chips.py.

import { around, element, seenTimes, within } from "../../../ui/assets/shared/dom.js"
import { pointerMoved, target } from "../../../ui/assets/shared/keys.js"
import { component } from "../../../ui/assets/shared/mount.js"
import { bytes, counted, numbers, whole } from "../../../ui/assets/shared/numbers.js"
import { saveTools } from "../../../ui/assets/shared/save.js"
import { sideOf } from "../../../ui/assets/shared/theme.js"

/**
 * What is sent.
 * @typedef {object} Data
 * @property {string} text its bytes, base64
 * @property {string} label
 * @property {boolean} with_ids each token stands above its id
 * @property {{ name: string, facts: string, note: string, tokens: number, labels: (string | [string, boolean][])[], ids: string, starts: string, lengths: string }[]} rows a tokenizer each; numbers as int32, base64
 * @property {import("../../../ui/assets/shared/colours.js").Palette} palette
 */

const SHADES = ["run0", "run1", "training", "run2", "validation"]
const HEX_SHOWN = 24

function create(place, key) {
  const root = within(place, "div", "gf-chips")
  const tip = within(root, "div", "gf-chips-tip", "", { hidden: "", id: `gf-chips-tip-${key}`, role: "status" })
  /** @type {any} */
  const self = { root, tip, key, rows: [], lit: [], bytes: null, text: null, focused: null, tools: null, under: null }
  self.tools = saveTools(root, () => "tokenizers", () => table(self))
  root.prepend(self.tools)
  const at = (event) => {
    const chip = around(event, ".gf-chip")
    return chip ? [self.rows[Number(chip.dataset.row)], Number(chip.dataset.token)] : null
  }
  root.addEventListener("pointermove", (event) => {
    const found = at(event)
    if (pointerMoved(self, event) && found && (found[0] !== self.under?.[0] || found[1] !== self.under[1])) point(self, ...found)
  })
  root.addEventListener("pointerleave", () => {
    self.pointer = null
    self.focused ? point(self, self.focused, self.focused.active) : unpoint(self)
  })
  root.addEventListener("click", (event) => {
    const found = at(event)
    if (!found) return
    choose(self, ...found)
    found[0].body.focus({ preventScroll: true })
  })
  root.addEventListener("focusin", (event) => {
    const row = self.rows.find((r) => r.body === event.target)
    if (!row) return
    self.focused = row
    choose(self, row, Math.min(row.active, row.chips.length - 1))
  })
  root.addEventListener("focusout", (event) => {
    if (self.tools.contains(event.relatedTarget)) return // what is chosen can be saved
    self.focused = null
    unpoint(self)
  })
  root.addEventListener("keydown", (event) => {
    const row = self.focused
    if (!row) return
    if (event.key === "Escape") return unpoint(self)
    const along = target(event.key, row.active, row.chips.length - 1, "x")
    const across = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (along === undefined && across === undefined) return
    event.preventDefault()
    if (along !== undefined) return choose(self, row, along, true)
    const next = self.rows[self.rows.indexOf(row) + across]
    if (!next) return
    next.active = first(next, row.starts[row.active])
    next.body.focus({ preventScroll: true })
    next.chips[next.active]?.scrollIntoView({ block: "nearest" })
  })
  return self
}

function table(self) {
  const lines = self.rows.flatMap((row) => row.labels.map((label, i) => {
    const start = row.starts[i], length = row.lengths[i], said = typeof label === "string" ? label : label.map(([piece]) => piece).join("")
    return [row.name, i, row.ids[i] < 0 ? null : row.ids[i], said, start, length, hexadecimal(self, start, length)]
  }))
  return [["tokenizer", "token", "id", "text", "first_byte", "bytes", "hex"], ...lines]
}

function hexadecimal(self, start, length) {
  return Array.from(self.bytes.subarray(start, start + length), (b) => b.toString(16).toUpperCase().padStart(2, "0")).join(" ")
}

// The first token of a row that ends after a byte; the last where none does.
function first(row, byte) {
  let low = 0, high = row.chips.length - 1
  while (low < high) {
    const middle = (low + high) >> 1
    if (row.starts[middle] + row.lengths[middle] > byte) high = middle
    else low = middle + 1
  }
  return Math.max(0, low)
}

function choose(self, row, index, scroll = false) {
  if (index < 0 || index >= row.chips.length) return
  row.chips[row.active]?.removeAttribute("aria-selected")
  row.active = index
  const chip = row.chips[index]
  chip.id = `gf-chip-${self.key}-${row.index}-${index}`
  chip.setAttribute("aria-selected", "true")
  chip.setAttribute("aria-label", words(self, row, index).replaceAll("\n", ", "))
  row.body.setAttribute("aria-activedescendant", chip.id)
  if (scroll) chip.scrollIntoView({ block: "nearest" })
  point(self, row, index)
}

function words(self, row, index) {
  const start = row.starts[index], length = row.lengths[index]
  const hex = hexadecimal(self, start, Math.min(length, HEX_SHOWN))
  const label = row.labels[index]
  const named = typeof label === "string" ? `“${label}”` : `“${label.map(([piece]) => piece).join("")}”, split inside a character`
  const id = row.ids[index] < 0 ? "not in this vocabulary, so no id" : `id ${whole(row.ids[index])}`
  return `${named}\n${id}\ntoken ${whole(index)} of ${whole(row.tokens)}\n`
    + `${counted(length, "byte")}: ${hex}${length > HEX_SHOWN ? " …" : ""}`
}

function point(self, row, index) {
  unpoint(self)
  self.under = [row, index]
  const start = row.starts[index], end = start + row.lengths[index]
  const light = (chip, name) => {
    chip.classList.add(name)
    self.lit.push(chip)
  }
  for (const other of self.rows) {
    for (let i = first(other, start); i < other.chips.length && other.starts[i] < end; i++) {
      if (other.starts[i] + other.lengths[i] > start) light(other.chips[i], "gf-chip-same")
    }
  }
  const chip = row.chips[index]
  light(chip, "gf-chip-here")
  self.tip.textContent = words(self, row, index)
  self.tip.hidden = false
  const frame = self.root.getBoundingClientRect(), box = chip.getBoundingClientRect(), own = self.tip.getBoundingClientRect()
  const times = seenTimes(self.root)
  self.tip.style.left = `${Math.max(0, Math.min(box.left - frame.left, frame.width - own.width)) / times}px`
  const above = box.top - own.height - 6
  self.tip.style.top = `${((above > 64 ? above : box.bottom + 6) - frame.top) / times}px`
}

function unpoint(self) {
  for (const chip of self.lit) chip.classList.remove("gf-chip-same", "gf-chip-here")
  self.lit = []
  self.under = null
  self.tip.hidden = true
}

// A row is built once for what it holds; a rerun that brings the same leaves it alone.
function build(self, data, index, withIds) {
  const row = { index, name: data.name, tokens: data.tokens, labels: data.labels, ids: numbers(data.ids, Int32Array), starts: numbers(data.starts, Int32Array), lengths: numbers(data.lengths, Int32Array), chips: [], active: 0, node: null, body: null }
  row.node = element("section", "gf-chips-row")
  within(row.node, "div", "gf-chips-head").append(element("span", "gf-chips-name", data.name), element("span", "gf-chips-facts", data.facts))
  row.body = element("div", "gf-chips-body", "", { role: "listbox", tabindex: 0, "aria-orientation": "horizontal", "aria-label": `${data.name}: ${data.facts}` })
  const all = document.createDocumentFragment()
  row.labels.forEach((label, i) => {
    const chip = element("span", "gf-chip", "", { role: "option", "data-row": index, "data-token": i })
    if (typeof label === "string") {
      chip.dir = "auto"
      chip.textContent = label
    } else {
      for (const [piece, hex] of label) chip.appendChild(element("span", hex ? "gf-chip-hex" : "", piece))
    }
    if (withIds) chip.appendChild(element("small", "gf-chip-id", row.ids[i] < 0 ? "no id" : String(row.ids[i])))
    if (row.ids[i] < 0) chip.classList.add("gf-chip-unknown")
    chip.style.setProperty("--gf-chip", `var(--gf-chip-${i % SHADES.length})`)
    row.chips.push(chip)
    all.append(chip)
    const gapEnds = i + 1 < row.starts.length ? row.starts[i + 1] : row.starts[i] + row.lengths[i]
    // Lines of the text stay lines: after a token that ends one, and where a blank between words did.
    if (self.bytes.subarray(row.starts[i], gapEnds).includes(10) && i + 1 < row.labels.length) all.append(element("br"))
  })
  row.body.appendChild(all)
  const said = within(row.node, "div", "gf-chips-said")
  said.append(row.body)
  if (data.note) within(said, "div", "gf-chips-note", data.note)
  return row
}

function update(self, /** @type {Data} */ data) {
  const side = sideOf(self.root)
  SHADES.forEach((shade, i) => self.root.style.setProperty(`--gf-chip-${i}`, data.palette[shade][side]))
  self.root.setAttribute("aria-label", data.label)
  const changed = data.text !== self.text
  if (changed) {
    self.text = data.text
    self.bytes = bytes(data.text)
    unpoint(self)
  }
  const kept = new Map(changed ? [] : self.rows.map((row) => [row.signature, row]))
  const rows = data.rows.map((given, index) => {
    const signature = JSON.stringify([index, given.name, given.facts, given.note, given.ids, given.lengths])
    return kept.get(signature) ?? Object.assign(build(self, given, index, data.with_ids), { signature })
  })
  if (rows.length !== self.rows.length || rows.some((row, i) => row !== self.rows[i])) {
    const focused = self.focused?.index
    unpoint(self)
    self.rows = rows
    self.root.replaceChildren(self.tools, ...rows.map((row) => row.node), self.tip)
    if (focused !== undefined) self.focused = null
  }
}

export default component({ create, update })
