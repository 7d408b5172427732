// @ts-check
// A keyboard of a model's alphabet, for those who have none, and for what they cannot type.

import { element, within } from "./dom.js"

const ROWS = ["qwertyuiop", "asdfghjkl", "zxcvbnm"]
const LONG = 12 // keys of a row of what no keyboard has in an order
const BLANKS = { " ": ["␣", "space"], "\n": ["⏎", "line break"], "\t": ["⇥", "tab"] }

/** How a character is written where it must be seen. @param {string} character */
export const visible = (character) => BLANKS[character]?.[0] ?? character

/** How it is named. @param {string} character */
export const named = (character) => BLANKS[character]?.[1] ?? character

/**
 * The rows of keys, each a pair of characters: without and with ⇧. Letters stand as on a keyboard, where the alphabet has them; then
 * comes the rest, and white space last.
 * @param {string[]} alphabet
 * @returns {[string, string][][]}
 */
export function rowsOf(alphabet) {
  const there = new Set(alphabet), taken = new Set(), rows = []
  const either = (/** @type {string} */ a, /** @type {string} */ b) => (there.has(a) ? a : there.has(b) ? b : "")
  for (const row of ROWS) {
    const keys = [...row].map((small) => /** @type {[string, string]} */ ([either(small, small.toUpperCase()), either(small.toUpperCase(), small)])).filter(([small]) => small)
    for (const pair of keys) for (const character of pair) taken.add(character)
    if (keys.length) rows.push(keys)
  }
  const rest = alphabet.filter((character) => !taken.has(character)), blank = (/** @type {string} */ one) => one in BLANKS
  const signs = rest.filter((one) => !blank(one))
  for (let i = 0; i < signs.length; i += LONG) rows.push(signs.slice(i, i + LONG).map((one) => /** @type {[string, string]} */ ([one, one])))
  const blanks = rest.filter(blank)
  if (blanks.length) rows.push(blanks.reverse().map((one) => /** @type {[string, string]} */ ([one, one])))
  return rows
}

/**
 * Puts a keyboard into `place`. `press` gets the character of the key; `mark` says what its keys look like: a class by character.
 * @param {Element} place
 * @param {string[]} alphabet
 * @param {(character: string) => void} press
 */
export function createKeyboard(place, alphabet, press) {
  const root = within(place, "div", "gf-keys", "", { role: "group", "aria-label": "Characters" })
  let upper = false, classes = /** @type {Record<string, string>} */ ({}), off = false
  const keys = /** @type {{ node: HTMLButtonElement, pair: [string, string] }[]} */ ([])
  const shift = element("button", "gf-keys-shift", "⇧", { "aria-label": "Capital letters", "aria-pressed": "false" })
  shift.onclick = () => { upper = !upper; paint() }
  const rows = rowsOf(alphabet)
  const shifts = rows.map((row) => row.some(([small, large]) => small !== large)).lastIndexOf(true)
  rows.forEach((row, at) => {
    const line = within(root, "div", "gf-keys-row")
    if (at === shifts) line.append(shift)
    for (const pair of row) {
      const node = within(line, "button", "gf-keys-key")
      node.classList.toggle("gf-keys-wide", pair[0] in BLANKS)
      node.onclick = () => { const character = pair[upper ? 1 : 0]; if (upper) { upper = false; paint() } press(character) }
      node.onmousedown = (event) => event.preventDefault() // the focus stays where one types
      keys.push({ node, pair })
    }
  })
  shift.onmousedown = (event) => event.preventDefault()
  function paint() {
    shift.setAttribute("aria-pressed", String(upper))
    shift.disabled = off
    for (const { node, pair } of keys) {
      const character = pair[upper ? 1 : 0], mark = classes[character] ?? ""
      node.textContent = visible(character)
      node.setAttribute("aria-label", named(character))
      node.dataset.mark = mark
      node.setAttribute("aria-pressed", String(mark === "chosen"))
      node.disabled = off || mark === "tried"
    }
  }
  paint()
  return {
    root,
    /** Marks characters: "tried" ones cannot be pressed, "chosen" is lit; all are off where `disabled`. @param {Record<string, string>} marks @param {boolean} [disabled] */
    mark(marks, disabled = false) { classes = marks; off = disabled; paint() },
  }
}
