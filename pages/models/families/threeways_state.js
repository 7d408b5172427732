// @ts-check
// What is to be seen of three models that write, at a step: which symbols stand, which one is looked at, what it read.

/**
 * @typedef {object} Said a symbol that a model wrote
 * @property {number} row
 * @property {number} at its cell in that row
 * @property {number} step after which it stands there
 * @property {string} symbol
 * @property {string} told its words
 * @property {boolean} wrong
 * @property {number[][]} reads weights over the cells of each row
 *
 * @typedef {object} Column one family
 * @property {string} family
 * @property {string} title
 * @property {string} does
 * @property {string | null} cannot why it is not run
 * @property {{ name: string, cells: string[] }[]} rows
 * @property {Said[]} said
 * @property {string[]} lines after each step
 *
 * @typedef {{ text: string, kind: "given" | "hidden" | "written" | "later", said: number }} Cell
 */

const BLANKS = ["␣", "⏎"] // as ui/text/tokens.py shows them

/**
 * The cells of each row after `step`; `said` is the symbol that is written there, -1 for none.
 * @param {Column} column
 * @param {number} step
 * @returns {Cell[][]}
 */
export function cellsAt(column, step) {
  const rows = column.rows.map((row) => row.cells.map((text) => /** @type {Cell} */ ({ text, kind: "given", said: -1 })))
  column.said.forEach((said, i) => {
    const here = step >= said.step
    const empty = column.family === "encoder" ? "hidden" : "later"
    rows[said.row][said.at] = { text: here ? said.symbol : empty === "hidden" ? "?" : "·", kind: here ? "written" : empty, said: here ? i : -1 }
  })
  return rows
}

/**
 * The symbol whose reading is shown: the one pointed at, if it stands there; else the newest; of several that came at
 * once, the first. -1 where nothing is written yet.
 * @param {Column} column
 * @param {number} step
 * @param {number} pointed
 */
export function marked(column, step, pointed) {
  if (column.said[pointed]?.step <= step) return pointed
  const newest = Math.max(0, ...column.said.map((said) => (said.step <= step ? said.step : 0)))
  return column.said.findIndex((said) => said.step === newest)
}

/**
 * How dark each cell of a row is: its weight as a share of the largest that the symbol has in any row; NaN for what it
 * could not read.
 * @param {Said} said
 * @param {number} row
 * @param {number} cells
 */
export function shades(said, row, cells) {
  const most = Math.max(...said.reads.flat(), 1e-9), weights = said.reads[row] ?? []
  return Array.from({ length: cells }, (_, i) => (i < weights.length ? weights[i] / most : NaN))
}

/**
 * Places with one more, or one less where it was among them.
 * @param {number[]} places
 * @param {number} at
 */
export function turned(places, at) {
  return places.includes(at) ? places.filter((place) => place !== at) : [...places, at].sort((a, b) => a - b)
}

/**
 * Letters in words, so that a line breaks between two of them: how many belong to each, the blank after a word among them.
 * @param {string[]} cells of a row as they end up, blanks and line ends as signs
 */
export function wordsOf(cells) {
  const sizes = [0]
  cells.forEach((cell, i) => {
    sizes[sizes.length - 1] += 1
    if (BLANKS.includes(cell) && i < cells.length - 1) sizes.push(0)
  })
  return sizes
}
