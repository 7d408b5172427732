// @ts-check
// The page's colours, as a component finds them.

import { channels, luminance } from "./colours.js"

/** @typedef {import("./colours.js").Palette} Palette */

/** @type {WeakMap<Element, { theme: string, values: Record<string, string> }>} */
const known = new WeakMap()

/**
 * A custom property of the page's theme. It is asked for once in each theme, which the class of Streamlit's root names: the answer
 * makes the browser work out every style of a page that is just being drawn.
 * @param {Element} node
 * @param {string} name without its `--st-`
 * @param {string} [fallback]
 */
export function themed(node, name, fallback = "") {
  const theme = document.querySelector('[data-testid="stApp"]')?.className ?? ""
  let held = known.get(node)
  if (held?.theme !== theme) known.set(node, (held = { theme, values: {} }))
  held.values[name] ||= getComputedStyle(node).getPropertyValue(`--st-${name}`).trim()
  return held.values[name] || fallback
}

/**
 * [r, g, b] of any colour that a style sheet may hold.
 * @param {string} colour
 */
export function rgb(colour) {
  const brush = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"))
  brush.fillStyle = colour
  return channels(brush.fillStyle)
}

/** @param {Element} node */
export function isDark(node) {
  return luminance(rgb(themed(node, "background-color", "#ffffff"))) < 0.5
}

/**
 * The place in a palette's pairs: 0 on a light page, 1 on a dark one.
 * @param {Element} node
 */
export const sideOf = (node) => (isDark(node) ? 1 : 0)

/**
 * Writes colours of a palette into the custom properties --gf-{name}; all of them, or those that are named. Returns the side.
 * @param {HTMLElement} root
 * @param {Palette} palette
 * @param {string[]} [names]
 */
export function paint(root, palette, names = Object.keys(palette)) {
  const side = sideOf(root)
  for (const name of names) root.style.setProperty(`--gf-${name}`, palette[name][side])
  return side
}
