// @ts-check
// A person's progress in this browser, and nowhere else: every component reads it here and notes it here. It is read anew
// before each change, since other tabs of the app write it, too.

import { ROOT } from "./dom.js"
import { visit } from "./history.js"
import { fileOf, fileRead, isNothing, merged, migrate, read, written } from "./progress_state.js"
import { browser, tab } from "./shelf.js"

/** @typedef {import("./progress_state.js").Progress} Progress */

const SHELF = "glassformer-progress", BEFORE = "glassformer-solved" // of a version that kept solved exercises only
export const CHANGED = "gf-progress" // said on the document when another progress is kept

/**
 * What else a browser keeps of a person: the name of each shelf, the most characters that an imported file may put there, and
 * what is said on the document when another text stands there. Export, import and forget cover them.
 * @type {{ name: string, most: number, said?: string }[]}
 */
const FURTHER = [
  { name: "glassformer-guesses", most: 8, said: "gf-guesses" }, // guess_state.js
  { name: "glassformer-before-after", most: 8192 }, // inventory_state.js
]
const OF_THIS_TAB = ["glassformer-guess-later", "glassformer-passages"]
const LIMITS = Object.fromEntries(FURTHER.map(({ name, most }) => [name, most]))
const DAY_MS = 86_400_000

/** The day by the visitor's calendar, as a number. */
export function today(now = new Date()) {
  return Math.floor(Date.UTC(now.getFullYear(), now.getMonth(), now.getDate()) / DAY_MS)
}

/** Progress as it stands. @returns {Progress} */
export function progress() {
  const held = read(browser.get(SHELF), today()), before = browser.get(BEFORE)
  if (before) {
    migrate(held, before, today())
    browser.put(SHELF, written(held))
    browser.drop(BEFORE)
  }
  return held
}

/**
 * Changes it; what changed nothing, and says so by `false`, is not written.
 * @param {(held: Progress, day: number) => unknown} act
 */
export function note(act) {
  const held = progress()
  if (act(held, today()) !== false) keep(held)
}

function keep(/** @type {Progress} */ held) {
  browser.put(SHELF, written(held))
  say(CHANGED)
}

const say = (/** @type {string} */ name) => document.dispatchEvent(new Event(name))

/** Calls `act` whenever another progress is kept, by this tab or another. @param {() => void} act @param {AbortSignal} signal */
export function watch(act, signal) {
  document.addEventListener(CHANGED, act, { signal })
  addEventListener("storage", ({ key }) => { if (key === SHELF || key === null) act() }, { signal })
}

const shelves = () => Object.fromEntries(FURTHER.map(({ name }) => [name, browser.get(name)]).filter(([, text]) => text))

/** Whether this browser keeps nothing of a person. */
export const empty = () => isNothing(progress()) && !Object.keys(shelves()).length

/** All of it, as the text of a file. */
export const exported = () => fileOf(progress(), shelves())

/** Adds what a file holds; what stands here stays. Throws Refused. @param {string} text */
export function imported(text) {
  const file = fileRead(text, today(), LIMITS)
  keep(merged(progress(), file.progress))
  for (const { name, said } of FURTHER) {
    if (!file.shelves[name] || browser.get(name)) continue
    browser.put(name, file.shelves[name])
    if (said) say(said)
  }
}

/** Forgets everything. */
export function forget() {
  for (const name of [SHELF, BEFORE, ...FURTHER.map((one) => one.name)]) browser.drop(name)
  for (const name of OF_THIS_TAB) tab.drop(name)
  for (const name of [CHANGED, ...FURTHER.map((one) => one.said)]) if (name) say(name)
}

const PATIENCE_MS = 30_000 // for a page that is asked for
export const WANTED = "gf-guess-wanted" // said on the document when somebody goes to a guess
let wanted = { guess: "", until: 0 }

/** Whether somebody has come for this guess, once. @param {string} guess */
export function wants(guess) {
  const come = wanted.guess === guess && Date.now() < wanted.until
  if (come) wanted.guess = ""
  return come
}

/**
 * Goes to the address of a question; a course that runs goes along.
 * @param {string} address below the app's root
 * @param {string} [guess] what is to be guessed there
 */
export function follow(address, guess = "") {
  wanted = { guess, until: Date.now() + PATIENCE_MS }
  const to = new URL(address, ROOT), here = new URL(location.href).searchParams
  for (const name of ["course", "scene"]) if (here.has(name)) to.searchParams.set(name, here.get(name) ?? "")
  visit(to)
  if (guess) say(WANTED)
}
