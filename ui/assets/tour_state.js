// @ts-check
// Where a key leads in a course, and which scene an address is, without the page.

import { sceneOf } from "./shared/history.js"

export const QUESTION = "question", ANSWER = "answer", FIGURE = "figure" // the parts of a scene, in their order; one without a question is its figure

/**
 * Which way a key leads in a course: 1 on, -1 back, 0 nowhere. Page Up and Page Down, which a presenter's clicker sends, always
 * count; arrows only where nothing else has use for them.
 * @param {string} key
 * @param {{ writes: boolean, busy: boolean }} where what has the focus: something written in, something that arrows move
 */
export function leads(key, { writes, busy }) {
  if (key === "PageDown" || (key === "ArrowRight" && !(busy || writes))) return 1
  if (key === "PageUp" || (key === "ArrowLeft" && !(busy || writes))) return -1
  return 0
}

/**
 * Where one step on or back leads from a part of a scene; null before the first and after the last. The way is question, answer,
 * figure: a step on never skips an answer. On a stage it is the same way back. A reader is asked once, and goes back from figure
 * to figure.
 * @typedef {{ at: number, part: string }} Place
 * @param {Place} from
 * @param {1 | -1} by
 * @param {{ count: number, asks: number[], asked: Set<number>, stage: boolean }} course `asks`: scenes with a question
 * @returns {Place | null}
 */
export function stepped({ at, part }, by, { count, asks, asked, stage }) {
  const parts = (/** @type {number} */ scene) => (asks.includes(scene) ? [QUESTION, ANSWER, FIGURE] : [FIGURE])
  const next = stage || by > 0 ? parts(at)[parts(at).indexOf(part) + by] : undefined
  if (next) return { at, part: next }
  const to = at + by
  if (to < 0 || to >= count) return null
  return { at: to, part: by > 0 && (stage || !asked.has(to)) ? parts(to)[0] : FIGURE }
}

/**
 * The answer that a key chooses, counted from 0: 1 to 5, or its letter; -1 for none.
 * @param {string} key
 * @param {number} count
 */
export function chosen(key, count) {
  const at = key.length === 1 ? Math.max("12345".indexOf(key), "abcde".indexOf(key.toLowerCase())) : -1
  return at < count ? at : -1
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
