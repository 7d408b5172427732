// @ts-check
// Whether a reader wants to be asked, kept in this browser only; and what is said to a choice.

import { browser, tab } from "./shared/shelf.js"

/** @typedef {{ text: string, said: string }} Choice */

const SHELF = "glassformer-guesses", OFF = "off"
const LATER = "glassformer-guess-later" // of this tab: the views where somebody said "not now"
export const ASKS = "gf-guesses" // said on the document when it changes
export const MISSED = "gf-guess-missed" // and when a guess was wrong

/** Whether somebody wants to be asked; at first, yes. */
export const asks = () => browser.get(SHELF) !== OFF

/** Nobody is asked on any page from now on, or again everybody who did not say so. @param {boolean} off */
export function declined(off) {
  if (off) browser.put(SHELF, OFF)
  else for (const [shelf, name] of /** @type {const} */ ([[browser, SHELF], [tab, LATER]])) shelf.drop(name)
  document.dispatchEvent(new Event(ASKS))
}

/** The views of this tab where nobody is to be asked now. */
export const postponed = () => tab.get(LATER).split(" ").filter(Boolean)

/** @param {string} id of a guess */
export const postpone = (id) => tab.put(LATER, [...postponed(), id].join(" "))

/**
 * What is said to the choice at `at`: whether it held; to one that did not, what was wrong with it, and then what holds.
 * @param {Choice[]} choices
 * @param {number} right
 * @param {number} at
 */
export function verdict(choices, right, at) {
  if (at === right) return { word: "Correct.", text: choices[at].said }
  return { word: "Not quite.", text: `${choices[at].said} The answer: ${choices[right].text}.` }
}
