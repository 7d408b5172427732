// @ts-check
// Where a key leads in a course, and which scene an address is, without the page.

import { sceneOf } from "./shared/history.js"

/**
 * The index of the scene that a key leads to; undefined for a key that leads nowhere. Page Up and Page Down, which a
 * presenter's clicker sends, count unless somebody writes; arrows only where nothing else has use for them.
 * @param {string} key
 * @param {number} at
 * @param {number} count
 * @param {{ writes: boolean, busy: boolean }} where what has the focus: something written in, something that arrows move
 * @returns {number | undefined}
 */
export function leads(key, at, count, { writes, busy }) {
  const on = key === "PageDown" || (key === "ArrowRight" && !busy)
  const back = key === "PageUp" || (key === "ArrowLeft" && !busy)
  if (writes || !(on || back)) return undefined
  const found = at + (on ? 1 : -1)
  return found >= 0 && found < count ? found : undefined
}

const WRITES = "input:not([type=range], [type=checkbox], [type=radio], [type=button]), textarea, [contenteditable=true]"
const LISTS = '[role=combobox][aria-expanded="false"]' // a list that is shut: its box is a text's, and nobody writes in it
const SLIDES = "input[type=range], [role=slider]"
const MOVES = 'input, select, [role=radio], [role=tab], [role=option], [role=combobox], [tabindex="0"]:not([data-testid="stMain"])'

/** Whether somebody writes in what has the focus. @param {Element | null} held */
export const writes = (held) => !!held?.matches(WRITES) && !held.matches(LISTS)

/**
 * Whether what has the focus keeps the arrows: a slider, and what somebody came to by the keyboard. A click leaves the focus on
 * what was clicked, and whoever clicked there goes on by arrows.
 * @param {Element | null} held
 * @param {boolean} tabbed
 */
export const arrows = (held, tabbed) => !!held && (held.matches(SLIDES) || (tabbed && held.closest(MOVES) !== null))

/**
 * The index of the scene that an address shows; -1 where it is none of these, or another page with the course in its address.
 * @param {string} address
 * @param {string[]} addresses of the scenes, relative
 */
export function sceneAt(address, addresses) {
  return addresses.findIndex((one) => sceneOf(new URL(one, address)) === sceneOf(address))
}

const EDGE = 8 // pixels between what is pointed at and what lies over the page

/**
 * By how many pixels a page is scrolled so that what is pointed at lies between `from` and `to`: as little as shows all of it,
 * or, where it is larger than that, to its beginning. Not at all where the share `enough` of what could be seen of it is seen.
 * @param {{ top: number, bottom: number }} box
 * @param {number} from
 * @param {number} to
 * @param {number} [enough]
 */
export function scrolledBy({ top, bottom }, from, to, enough = 1) {
  const seen = Math.min(bottom, to) - Math.max(top, from)
  if (enough < 1 && seen >= enough * Math.min(bottom - top, to - from)) return 0
  const above = top - EDGE - from, below = bottom + EDGE - to
  return above < 0 || below > above ? above : Math.max(0, below)
}
