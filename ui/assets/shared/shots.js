// @ts-check
// What a film is made of: a component says how a shot of it is taken. See ../film.js.

/**
 * A figure at one moment: Plotly's data and layout, or a picture [SVG text, width, height].
 * @typedef {{ data: any[], layout: any } | { drawing: [string, number, number] }} Shot
 */

/** @type {WeakMap<Element, () => Shot | null>} */
const known = new WeakMap()

/**
 * @param {Element} root what is filmed: one figure
 * @param {() => Shot | null} shoot null where there is nothing to be seen yet
 */
export function filmed(root, shoot) {
  root.classList.add("gf-filmed")
  known.set(root, shoot)
}

/** All that can be filmed below an element. @param {Element} place */
export const figures = (place) => [...place.querySelectorAll(".gf-filmed")].filter((root) => known.has(root) && !root.parentElement?.closest(".gf-filmed"))

/** @param {Element} root */
export const shot = (root) => known.get(root)?.() ?? null
