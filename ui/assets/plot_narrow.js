// @ts-check
// Panels side by side have no room on a phone: there they stand one below the other. Without a page.

export const NARROW = 480 // pixels: below it two panels are narrower than their titles
const GAP = 0.18 // of the height, between two panels: ticks and a title stand there

/** @typedef {{ [field: string]: any }} Layout */

/**
 * The panels of a layout that stand in one row, from the left: each x axis with the y axis that is its own. None where the
 * figure is not a plain row of equal panels.
 * @param {Layout} layout
 * @returns {{ x: any, y: any, from: number, to: number }[]}
 */
export function panels(layout) {
  const axes = (/** @type {string} */ letter) => Object.keys(layout).filter((key) => new RegExp(`^${letter}axis\\d*$`).test(key))
  const found = axes("x").map((key) => {
    const x = layout[key], own = x.anchor ?? `y${key.slice("xaxis".length)}`
    const [from, to] = x.domain ?? [0, 1]
    return { x, y: layout[`yaxis${own.slice(1)}`], from, to }
  }).sort((a, b) => a.from - b.from)
  const row = found.length > 1 && new Set(found.map(({ y }) => y)).size === axes("y").length && axes("y").length === found.length
    && found.every(({ y }) => y && !y.domain && !y.overlaying)
    && found.every(({ from, to }, i) => (!i || from >= found[i - 1].to) && Math.abs(to - from - (found[0].to - found[0].from)) < 0.05)
  const apart = (/** @type {any} */ one) => one.xref !== "paper" && one.yref !== "paper"
  const titles = (layout.annotations ?? []).every((/** @type {any} */ note) => apart(note) || (note.xref === "paper" && note.yref === "paper" && note.y >= 1))
  return row && titles && (layout.shapes ?? []).every(apart) ? found : []
}

/**
 * Puts the panels one below the other where the figure is narrow; the titles go along. Returns by how much higher the figure
 * should be: 1 where nothing was done.
 * @param {Layout} layout changed in place
 * @param {number} width pixels
 */
export function stack(layout, width) {
  const found = width && width < NARROW ? panels(layout) : []
  if (!found.length) return 1
  const count = found.length, high = (1 - (count - 1) * GAP) / count
  const tops = found.map((_, i) => 1 - i * (high + GAP))
  for (const note of layout.annotations ?? []) {
    if (note.xref !== "paper") continue
    const i = Math.max(0, found.filter(({ from }) => from <= note.x + 1e-6).length - 1), { from, to } = found[i]
    Object.assign(note, { x: (note.x - from) / (to - from), y: tops[i] + (note.y - 1) })
  }
  found.forEach(({ x, y }, i) => {
    x.domain = [0, 1]
    y.domain = [Math.max(0, tops[i] - high), tops[i]]
    delete y.showticklabels // of the first panel alone, while they stood in a row
  })
  return 0.8 * count
}

/**
 * What a figure is to be like on a phone, where it says so: `layout.meta.narrow` is laid over the layout, notes called `wide` go,
 * and those called `narrow:…` say what comes after that. Returns by how much higher it should be: `layout.meta.taller`, or 1.
 * @param {Layout} layout changed in place
 * @param {number} width pixels
 */
export function slim(layout, width) {
  const other = layout.meta?.narrow
  if (!other || !width || width >= NARROW) return 1
  Object.assign(layout, other)
  layout.annotations = (layout.annotations ?? []).filter((/** @type {any} */ note) => note.name !== "wide")
  for (const note of layout.annotations) if (note.name?.startsWith("narrow:")) note.text = note.name.slice("narrow:".length)
  return layout.meta.taller ?? 1
}
