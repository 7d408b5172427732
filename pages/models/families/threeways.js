// @ts-check
// One text through an encoder, a decoder and an encoder-decoder, step by step. See pages/models/families/trained_models.py.

import { alone, around, resize, within, write } from "../../../ui/assets/shared/dom.js"
import { target } from "../../../ui/assets/shared/keys.js"
import { component } from "../../../ui/assets/shared/mount.js"
import { asker } from "../../../ui/assets/shared/play.js"
import { saveTools } from "../../../ui/assets/shared/save.js"
import { createStepper } from "../../../ui/assets/shared/stepper.js"
import { paint } from "../../../ui/assets/shared/theme.js"
import { cellsAt, marked, shades, turned, wordsOf } from "./threeways_state.js"

/**
 * What is sent.
 * @typedef {object} Data
 * @property {import("./threeways_state.js").Column[]} columns
 * @property {number} last step
 * @property {number} step at first
 * @property {string} name of the step in the address
 * @property {string} text
 * @property {number[]} toggled letters that were clicked
 * @property {import("../../../ui/assets/shared/colours.js").Palette} palette
 */

const TICK_MS = 520

function create(place, _, signal) {
  const root = within(place, "div", "gf-three")
  /** @type {any} */
  const self = { root, data: null, columns: [], toggled: [] }
  self.question = asker(() => self.toggled.join(), () => self.trigger("clicked", { text: self.data.text, places: self.toggled }), () => self.again())
  const moved = () => { forget(self); draw(self) }
  self.steps = createStepper({ unit: "step", label: "Writing step", play: "Play: all three write", ms: TICK_MS, moved }, signal)
  self.steps.bar.append(saveTools(root, () => "three-families", () => table(self)))
  root.append(self.steps.bar)
  self.grid = within(root, "div", "gf-three-grid")
  return self
}

/** No symbol is pointed at any longer. */
function forget(self) {
  for (const made of self.columns) made.pointed = -1
}

// A column --------------------------------------------------------------------------------------------------------------

function column(self, index) {
  const root = within(self.grid, "section", "gf-three-column")
  const made = { root, title: within(root, "h3"), does: within(root, "p", "gf-three-does"), rows: [], pointed: -1, stop: 0, touched: false }
  const body = within(root, "div"), line = within(root, "p", "gf-three-line gf-text-line"), told = within(root, "p", "gf-three-told gf-text-told")
  const at = (event) => {
    const cell = around(event, ".gf-three-cell")
    return cell ? { row: Number(cell.dataset.row), place: Number(cell.dataset.at), said: Number(cell.dataset.said) } : null
  }
  body.addEventListener("pointerover", (event) => {
    const found = at(event), already = marked(self.data.columns[index], self.steps.at, made.pointed)
    made.touched = event.pointerType === "touch" && (found?.said ?? -1) >= 0 && found?.said !== already
    if (!found || found.said < 0 || found.said === made.pointed) return
    made.pointed = found.said
    draw(self)
  })
  const press = (event) => {
    const found = at(event)
    if (!found) return
    if (event.type === "click" && made.touched) made.touched = false // a tap on a blank points at it, as a mouse would; the next one is the click
    else if (self.data.columns[index].family === "encoder" && !alone()) { made.stop = found.place; hide(self, found.place) }
    else if (found.said >= 0) { made.pointed = found.said; draw(self) }
  }
  body.addEventListener("click", press)
  body.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return
    event.preventDefault()
    press(event)
  })
  body.addEventListener("keydown", (event) => {
    const found = at(event), cells = found && made.rows[found.row].cells
    const next = cells ? target(event.key, found.place, cells.length - 1, "x") : undefined
    if (next === undefined || !cells[next]) return
    event.preventDefault()
    made.stop = next
    if (Number(cells[next].dataset.said) >= 0) made.pointed = Number(cells[next].dataset.said)
    draw(self)
    cells[next].focus()
  })
  return Object.assign(made, { body, line, told, remove: () => root.remove() })
}

function hide(self, place) {
  self.toggled = turned(self.toggled, place)
  self.question.ask()
}

/** Cells in words of these many: a line breaks between two words, inside one only where it is longer than a line. */
function spell(row, sizes) {
  if (row.sizes === sizes.join()) return
  row.sizes = sizes.join()
  row.strip.replaceChildren()
  row.cells = sizes.flatMap((many) => {
    const word = within(row.strip, "span", "gf-three-word")
    return Array.from({ length: many }, () => within(word, "span", "gf-three-cell"))
  })
}

function drawColumn(self, made, told) {
  const encoder = told.family === "encoder" && !alone() // the server reads it again without the letters that are hidden
  write(made.title, told.title)
  write(made.does, told.does)
  made.root.classList.toggle("gf-three-cannot", told.cannot !== null)
  const index = marked(told, self.steps.at, made.pointed), said = told.said[index], rows = cellsAt(told, self.steps.at)
  resize(made.rows, rows.length, () => {
    const box = within(made.body, "div", "gf-three-row"), name = within(box, "span", "gf-three-name"), strip = within(box, "div", "gf-three-cells gf-text")
    return { box, name, strip, sizes: "", cells: [], remove: () => box.remove() }
  })
  rows.forEach((cells, r) => {
    const row = made.rows[r]
    write(row.name, told.rows[r].name)
    row.name.hidden = !told.rows[r].name
    spell(row, told.rows[r].name ? cells.map(() => 1) : wordsOf(told.rows[r].cells))
    const dark = said ? shades(said, r, cells.length) : []
    cells.forEach((cell, i) => {
      const node = row.cells[i], weight = said?.reads[r]?.[i], mark = cell.said >= 0 && cell.said === index
      write(node, cell.text)
      node.className = `gf-three-cell gf-three-${cell.kind}`
      node.classList.toggle("gf-three-read", Number.isFinite(dark[i]))
      node.classList.toggle("gf-three-mark", mark)
      node.classList.toggle("gf-three-wrong", cell.said >= 0 && told.said[cell.said].wrong)
      node.style.setProperty("--read", String(Number.isFinite(dark[i]) ? Math.round(dark[i] * 100) / 100 : 0))
      Object.assign(node.dataset, { row: String(r), at: String(i), said: String(cell.said) })
      if (encoder) { // one stop of the tab key, the arrows go from letter to letter; elsewhere the slider reaches every symbol
        node.tabIndex = i === Math.min(made.stop, cells.length - 1) ? 0 : -1
        node.setAttribute("role", "button")
        node.setAttribute("aria-pressed", String(cell.kind !== "given"))
      }
      const read = weight === undefined ? "" : `, ${(weight * 100).toFixed(1)}% of the attention`
      const name = cell.said >= 0 ? told.said[cell.said].told : { given: cell.text, hidden: "hidden", later: "not written yet" }[cell.kind]
      node.title = `${name}${read}${encoder ? "; click to hide or show it" : ""}`
    })
  })
  write(made.line, told.cannot ?? told.lines[self.steps.at])
  write(made.told, said ? said.told : "")
}

function draw(self) {
  const { columns, last } = self.data
  paint(self.root, self.data.palette, ["attention", "output", "quiet"])
  self.steps.paint(`step ${self.steps.at} of ${last}`)
  resize(self.columns, columns.length, (i) => column(self, i))
  columns.forEach((told, i) => drawColumn(self, self.columns[i], told))
}

function table(self) {
  const head = ["family", "step", "symbol", "words", "row", "place", "weight"]
  return [head, ...self.data.columns.flatMap((c) => c.said.flatMap((s) => s.reads.flatMap((weights, row) => weights.map((w, i) => [c.family, s.step, s.symbol, s.told, row, i, w]))))]
}

function update(self, /** @type {Data} */ data) {
  if (self.data && self.data.text !== data.text) { forget(self); self.question.forget() }
  self.data = data
  if (self.question.answered(data.toggled.join())) self.toggled = data.toggled
  self.steps.update(data)
  draw(self)
}

export default component({ create, update })
