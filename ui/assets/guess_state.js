// @ts-check
// Whether a reader wants to be asked, kept in this browser only; and what is said to a choice.

/** @typedef {{ text: string, said: string }} Choice */

const SHELF = "glassformer-guesses", OFF = "off"
export const ASKS = "gf-guesses" // said on the document when it changes

const LATER = "glassformer-guess-later" // of this tab: the views where somebody said "not now"

let held = "" // where a browser keeps nothing, until the page is left

/** Whether somebody wants to be asked; at first, yes. */
export function asks() {
  try {
    return localStorage.getItem(SHELF) !== OFF
  } catch {
    return held !== OFF
  }
}

/** Nobody is asked on any page from now on, or again everybody who did not say so. @param {boolean} off */
export function declined(off) {
  held = off ? OFF : ""
  try {
    if (off) localStorage.setItem(SHELF, OFF)
    else localStorage.removeItem(SHELF)
    if (!off) sessionStorage.removeItem(LATER)
  } catch {
    // held in this page only
  }
  document.dispatchEvent(new Event(ASKS))
}

/** The views of this tab where nobody is to be asked now. */
export function postponed() {
  try {
    return (sessionStorage.getItem(LATER) ?? "").split(" ").filter(Boolean)
  } catch {
    return []
  }
}

/** @param {string} id of a guess */
export function postpone(id) {
  try {
    sessionStorage.setItem(LATER, [...postponed(), id].join(" "))
  } catch {
    declined(true) // a browser that keeps nothing: then none at all
  }
}

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
