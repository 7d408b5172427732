// @ts-check
// A text as a row of tokens: one is chosen, by a click or the arrow keys. See ui/players/tokens.py.

import { shade } from "./shared/colours.js"
import { around, resize, within, write } from "./shared/dom.js"
import { target } from "./shared/keys.js"
import { component } from "./shared/mount.js"
import { asker } from "./shared/play.js"
import { sideOf } from "./shared/theme.js"

/**
 * What is sent.
 * @typedef {object} Data
 * @property {string[]} tokens
 * @property {number} index the chosen one
 * @property {string} label
 * @property {string[] | null} hints
 * @property {number[] | null} values in [0, 1], shade the tokens
 * @property {number | null} lines that are seen at once, of a longer text the chosen token's
 * @property {import("./shared/colours.js").Palette} palette
 */

const GAP = 4 // px around a token

function create(place) {
  const root = within(place, "div", "gf-tokens", "", { role: "listbox", tabindex: 0 })
  /** @type {any} */
  const self = { root, cells: [], index: 0 }
  self.question = asker(() => self.index, (index) => self.trigger("index", index), () => self.again())
  root.addEventListener("click", (event) => {
    const cell = around(event, ".gf-token")
    if (cell) choose(self, self.cells.indexOf(cell))
  })
  root.addEventListener("keydown", (event) => {
    const next = target(event.key, self.index, self.cells.length - 1, "x")
    if (next === undefined) return
    event.preventDefault()
    choose(self, next)
  })
  return self
}

function choose(self, index) {
  if (index < 0 || index >= self.cells.length || index === self.index) return
  self.index = index
  mark(self)
  self.question.ask()
}

function mark(self) {
  self.cells.forEach((cell, index) => {
    cell.classList.toggle("gf-chosen", index === self.index)
    cell.setAttribute("aria-selected", String(index === self.index))
  })
  self.root.setAttribute("aria-activedescendant", self.cells[self.index]?.id ?? "")
  scroll(self.root, self.cells[self.index])
}

/** Moves the tokens, where not all of their lines are seen, until the chosen one is. */
function scroll(root, cell) {
  if (!cell || root.scrollHeight <= root.clientHeight) return
  const [top, bottom] = [cell.offsetTop - GAP, cell.offsetTop + cell.offsetHeight + GAP]
  if (top < root.scrollTop) root.scrollTop = top
  else if (bottom > root.scrollTop + root.clientHeight) root.scrollTop = bottom - root.clientHeight
}

function update(self, /** @type {Data} */ data, _, key) {
  self.root.setAttribute("aria-label", data.label)
  if (data.tokens.length !== self.cells.length) self.question.forget()
  resize(self.cells, data.tokens.length, (i) => within(self.root, "span", "gf-token", "", { role: "option", id: `gf-token-${key}-${i}` }))
  const side = sideOf(self.root)
  self.cells.forEach((cell, i) => {
    write(cell, data.tokens[i])
    cell.title = data.hints ? data.hints[i] : `${data.tokens[i]} at position ${i}`
    Object.assign(cell.style, data.values ? shade(data.palette, data.values[i], side) : { background: "", color: "" })
  })
  self.root.style.setProperty("--gf-lines", data.lines ? String(data.lines) : "")
  self.root.classList.toggle("gf-few-lines", Boolean(data.lines))
  if (self.question.answered(data.index)) self.index = data.index
  mark(self)
}

export default component({ create, update })
