// @ts-check
// On a stage the page is drawn as large as the screen allows, and its figures are as high as what stands beside them leaves free.

import { running } from "./shared/dom.js"
import { nextGrown, stageZoom } from "./stage_state.js"

const FOLD = '[data-testid="stExpander"]', PLOTS = ".gf-plot"
const EDGE = 10, CLOSE = 6 // pixels: kept free below, and near enough
const ROUNDS = 4, REST = 150 // milliseconds without a change before it is measured

let grown = 1
// What is no figure of Plotly's asks how high the window is (windowHeight in shared/dom.js), and takes what is spare along.
let spare = 0, tries = 0, view = ""
const SPARE = 260, TRIES = 4 // pixels at most; a thing that does not grow is not asked for ever

/** @param {boolean} on */
export function zoom(on) {
  const times = on ? stageZoom(innerWidth, innerHeight) : 1, { style } = document.documentElement
  if (!on) for (const name of ["--gf-zoom", "--gf-unzoom", "--gf-scale", "--gf-scaled", "--gf-spare"]) style.removeProperty(name)
  else {
    style.setProperty("--gf-zoom", String(times))
    style.setProperty("--gf-unzoom", String(times))
    style.setProperty("--gf-scale", String(times))
    style.setProperty("--gf-scaled", times === 1 ? "none" : `scale(${times})`)
  }
  return times
}

const seen = (/** @type {Element} */ node) => { const box = node.getBoundingClientRect(); return box.width > 1 && box.height > 1 }

function tell(/** @type {HTMLElement[]} */ plots, /** @type {number} */ next) {
  grown = next
  for (const one of plots) one.dispatchEvent(new CustomEvent("gf-grow", { detail: next }))
}

/** Heights of the figures that are not folded away, until the last line of the view ends where the screen does. */
export function fit() {
  const main = document.querySelector('[data-testid="stMainBlockContainer"]'), times = stageZoom(innerWidth, innerHeight)
  if (!main || document.querySelector(".gf-full")) return
  const plots = /** @type {HTMLElement[]} */ ([...main.querySelectorAll(PLOTS)]).filter((one) => !one.closest(FOLD) && seen(one))
  const about = location.pathname + (main.querySelector("h2")?.textContent ?? "")
  if (about !== view) {
    view = about
    tries = 0
    give(0) // what was spare on another view is none here
  }
  if (!plots.length) return others(main, times)
  tell(plots, grown)
  for (let round = 0; round < ROUNDS; round++) {
    const slack = free(main), boxes = plots.map((one) => one.getBoundingClientRect())
    if (Math.abs(slack) <= CLOSE) return
    const stack = Math.max(...boxes.map((box) => box.bottom)) - Math.min(...boxes.map((box) => box.top))
    const next = nextGrown(grown, slack / times, stack / times)
    if (Math.abs(next - grown) < 0.005) return
    tell(plots, next)
  }
}

function give(/** @type {number} */ next) {
  if (next === spare) return
  spare = next
  document.documentElement.style.setProperty("--gf-spare", String(spare))
  for (const one of document.querySelectorAll(".gf-filmed")) one.dispatchEvent(new CustomEvent("gf-spare", { bubbles: true })) // a picture of it may be a part: the map of Home
}

function others(/** @type {Element} */ main, /** @type {number} */ times) {
  for (let round = 0; round < ROUNDS; round++) {
    const slack = free(main) / times, next = Math.max(-SPARE, Math.min(SPARE, spare + slack))
    if (Math.abs(slack) <= CLOSE || next === spare || (slack > 0 && ++tries > TRIES)) break
    give(next)
  }
  if (spare > 0 && free(main) / times < -CLOSE) give(0) // rather smaller than cut off
}

/** Where a thing ends as it is seen: a long text in a box that scrolls ends with its box. @param {Element} one @param {Element} main */
function bottom(one, main) {
  let least = one.getBoundingClientRect().bottom
  for (let up = one.parentElement; up && up !== main; up = up.parentElement) {
    if (getComputedStyle(up).overflowY !== "visible") least = Math.min(least, up.getBoundingClientRect().bottom)
  }
  return least
}

/** Pixels between the end of the view and the end of the screen; below 0 where it reaches further. @param {Element} main */
function free(main) {
  const bar = document.querySelector(".gf-tour"), below = bar && seen(bar) ? innerHeight - bar.getBoundingClientRect().top : 0
  const parts = [...main.querySelectorAll('[data-testid="stElementContainer"]')].filter((one) => !one.closest(`${FOLD}, .st-key-stage_place, .gf-tour`) && !one.querySelector(".gf-tour, .gf-stage-ui") && seen(one))
  const scrolled = document.querySelector('[data-testid="stMain"]')?.scrollTop ?? 0
  return innerHeight - below - EDGE - Math.max(...parts.map((one) => bottom(one, main))) - scrolled
}

/** Measures whenever the page has changed and rests. @returns {() => void} what ends it */
export function follow() {
  let timer = /** @type {any} */ (0)
  const later = () => { clearTimeout(timer); timer = setTimeout(() => (running() ? later() : fit()), REST) }
  const resized = (/** @type {Event} */ event) => { zoom(true); if (event.isTrusted) tries = 0; later() }
  const watcher = new MutationObserver((changes) => { if (changes.some(({ target }) => !(target instanceof Element) || !target.closest(".gf-figure, .gf-stage-ui"))) later() })
  watcher.observe(document.querySelector('[data-testid="stApp"]') ?? document.body, { childList: true, subtree: true })
  window.addEventListener("resize", resized)
  const sized = new ResizeObserver(later), main = document.querySelector('[data-testid="stMainBlockContainer"]')
  if (main) sized.observe(main)
  later()
  return () => {
    clearTimeout(timer)
    watcher.disconnect()
    sized.disconnect()
    window.removeEventListener("resize", resized)
    spare = 0
    tell(/** @type {HTMLElement[]} */ ([...document.querySelectorAll(PLOTS)]), 1)
  }
}
