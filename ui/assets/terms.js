// @ts-check
// What a term means: a card at every link to #term-..., while it is pointed at, focused or pressed; and the sidebar's buttons.
// The links are made by ui/text/glossary.py, anywhere on the page; this is mounted once.

import { around, button, element, ROOT, within } from "./shared/dom.js"
import { component } from "./shared/mount.js"
import { ASKS, asks, declined } from "./guess_state.js"

/** @typedef {{ id: string, title: string, text: string, page: string, href: string }} Term */

const TERMS = 'a[href^="#term-"]'
const HERE = "a.gf-strip" // of ui/map_strip.py
const EDGE = 8, GAP = 6 // pixels: from the window's edge, and between term and card
const SOON = 250 // milliseconds in which a pointer may go from the term to its card

function create(place, _, signal) {
  const root = within(place, "div", "gf-terms")
  const card = within(root, "div", "gf-term-card", "", { popover: "manual", role: "dialog" })
  const self = { root, card, terms: new Map(), at: null, pinned: false, timer: 0 }
  const search = button("Search", "Search views, terms and exercises (key /)", () => searched(""))
  search.append(element("kbd", "", "/"))
  root.prepend(search, button("Glossary", "Glossary: what the terms mean", () => searched("Term")), button("Stage", "Stage mode: larger, for a projector (key p)", () => document.dispatchEvent(new Event("gf-stage"))), guessing(signal))
  listen(self, signal)
  read(self)
  return self
}

/** Fetches the terms. */
async function read(self) {
  try {
    const answer = await fetch(new URL("terms", ROOT), { cache: "no-store" })
    if (answer.ok) self.terms = new Map((await answer.json()).map((/** @type {Term} */ term) => [term.id, term]))
  } catch { /* the next term that is pointed at asks again */ }
}

/** Opens ./search.js. @param {string} detail the kind of entry that is searched */
const searched = (detail) => document.dispatchEvent(new CustomEvent("gf-search", { detail }))

/** The switch of what ui/assets/guess.js asks. @param {AbortSignal} signal */
function guessing(signal) {
  const made = button("Guess", "Guess first: a small button beside questions that allow it", () => declined(asks()))
  const say = () => made.setAttribute("aria-pressed", String(asks()))
  document.addEventListener(ASKS, say, { signal })
  say()
  return made
}

function listen(self, signal) {
  const { card } = self
  const on = (name, act, options = {}) => document.addEventListener(name, act, { signal, ...options })
  on("pointerover", (event) => {
    if (event.pointerType === "touch") return // a tap presses
    const term = around(event, TERMS)
    if (term) show(self, term, self.pinned && self.at === term)
    else if (card.contains(event.target)) clearTimeout(self.timer)
    else if (self.at && !self.pinned) later(self)
  })
  on("focusin", (event) => {
    const term = around(event, TERMS)
    if (term) show(self, term, self.pinned && self.at === term)
    else if (self.at && !card.contains(event.target)) hide(self)
  })
  on("click", (event) => {
    const term = around(event, TERMS), place = around(event, HERE)
    if (place && !asWanted(event)) {
      event.preventDefault()
      self.trigger("part", place.dataset.part)
    }
    if (!term) return
    event.preventDefault() // the address says what is shown, and keeps doing so
    event.stopPropagation()
    if (self.at === term && self.pinned) return hide(self)
    show(self, term, true)
    if (event.detail === 0) card.querySelector("a")?.focus() // pressed by a key: on into the card
  }, { capture: true })
  on("pointerdown", (event) => { if (self.at && !card.contains(event.target) && !around(event, TERMS)) hide(self) })
  on("keydown", (event) => {
    if (event.key !== "Escape" || !self.at) return
    event.stopPropagation()
    const back = card.contains(document.activeElement) ? self.at : null
    hide(self)
    if (back) { back.focus(); hide(self) }
  }, { capture: true })
  on("scroll", (event) => { if (self.at && !card.contains(event.target)) hide(self) }, { capture: true, passive: true })
}

/** @param {HTMLElement} anchor @param {boolean} pinned */
function show(self, anchor, pinned) {
  clearTimeout(self.timer)
  self.pinned = pinned
  if (self.at === anchor) return
  const term = self.terms.get((anchor.getAttribute("href") ?? "").slice("#term-".length))
  hide(self)
  if (!self.terms.size) read(self)
  if (!term) return
  Object.assign(self, { at: anchor, pinned })
  const said = element("p", "", term.text)
  said.id = "gf-term-said"
  self.card.replaceChildren(element("strong", "", term.title), said, pageLink(self, term))
  self.card.setAttribute("aria-label", term.title)
  anchor.setAttribute("aria-describedby", said.id)
  self.card.showPopover()
  const { width, height } = self.card.getBoundingClientRect()
  const where = cardPlace(anchor.getBoundingClientRect(), { width, height }, { width: innerWidth, height: innerHeight })
  Object.assign(self.card.style, { left: `${where.left}px`, top: `${where.top}px` })
}

/**
 * The card's corner: below its term where there is room, else above; never outside the window.
 * @param {{ left: number, top: number, bottom: number }} term
 * @param {{ width: number, height: number }} card
 * @param {{ width: number, height: number }} view
 */
export function cardPlace(term, card, view) {
  const left = Math.max(EDGE, Math.min(term.left, view.width - card.width - EDGE))
  const below = term.bottom + GAP
  const fits = below + card.height + EDGE <= view.height
  return { left, top: fits ? below : Math.max(EDGE, term.top - GAP - card.height) }
}

function later(self) {
  clearTimeout(self.timer)
  self.timer = setTimeout(() => { if (!self.pinned && !self.card.contains(document.activeElement)) hide(self) }, SOON)
}

function hide(self) {
  clearTimeout(self.timer)
  self.at?.removeAttribute("aria-describedby")
  Object.assign(self, { at: null, pinned: false })
  if (self.card.matches(":popover-open")) self.card.hidePopover()
}

/** Into another tab or window: by the address. @param {MouseEvent} event */
const asWanted = (event) => event.ctrlKey || event.metaKey || event.shiftKey

/** @param {Term} term */
function pageLink(self, term) {
  const link = element("a", "", `See it: ${term.page}`)
  link.href = term.href
  link.onclick = (event) => {
    if (asWanted(event)) return
    event.preventDefault()
    hide(self)
    self.trigger("opened", term.id)
  }
  return link
}

function update(self) {
  if (self.at && !self.at.isConnected) hide(self)
}

export default component({ create, update })
