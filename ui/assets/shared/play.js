// @ts-check
// What moves by itself, and what the server is asked meanwhile. Only `playButton`, `still` and `keepInLink` touch the page.

import { running } from "./dom.js"
import { amended, amendNow, sceneOf } from "./history.js"

/** Whether the person asked for less motion. */
export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches

/** Whether the lecturer has frozen the screen: see ../stage_freeze.js. */
const frozen = () => document.documentElement.classList.contains("gf-frozen")

/**
 * The sign and the name of a button that plays and pauses.
 * @param {HTMLElement} button
 * @param {boolean} playing
 * @param {string} [play] what it is called while it would play
 */
export function playButton(button, playing, play = "Play") {
  button.textContent = playing ? "❚❚" : "▶"
  button.title = playing ? "Pause" : play
  button.setAttribute("aria-label", button.title)
}

/**
 * How many steps are due `elapsed` milliseconds after the last ones, at `rate` a second, and when they count as made. A
 * hidden tab does not catch up: above `most` steps only so many are made, and the clock starts anew.
 * @param {number} elapsed
 * @param {number} rate
 * @param {number} [most]
 * @returns {{ steps: number, used: number }}
 */
export function due(elapsed, rate, most = 20) {
  const steps = Math.floor((elapsed * rate) / 1000)
  return steps > most ? { steps: most, used: elapsed } : { steps, used: (steps * 1000) / rate }
}

/**
 * Calls `step` with the number of steps that are due, until it returns false or `stop` is called. `rate` is asked at every
 * frame; 0 is as fast as frames come, `burst` steps each.
 * @param {() => number} rate
 * @param {(steps: number) => boolean | void} step
 * @param {number} [burst]
 * @returns {{ stop: () => void }}
 */
export function frames(rate, step, burst = 8) {
  let last = performance.now(), frame = 0, going = true
  const tick = (time) => {
    if (!going) return
    if (frozen()) { // on release it goes on from where it stood, as fast as frames come or slower
      last = time
      frame = requestAnimationFrame(tick)
      return
    }
    const now = rate(), { steps, used } = now ? due(time - last, now) : { steps: burst, used: time - last }
    if (steps > 0) {
      last += used
      if (step(steps) === false) going = false
    }
    if (going) frame = requestAnimationFrame(tick)
  }
  frame = requestAnimationFrame(tick)
  return { stop: () => { going = false; cancelAnimationFrame(frame) } }
}

const LOOK_MS = 500 // at whether the server rests
const OTHER = 3, LOST = 10 // looks in a row at a server at rest: then another question is asked; then this one is lost

/**
 * What a hand chooses and the server answers, one question at a time: moves faster than the answers would otherwise interrupt
 * each of them, and an older answer would put back what was chosen before. `wanted` says what the hand wants now; `ask` sends it
 * unless an answer is awaited; `answered` says what the server has drawn, and asks for what is wanted by then. Where no answer
 * comes though the server rests, what is wanted by then is asked, or else the server is right: `lost` has its last message drawn again.
 * @template Question
 * @param {() => Question} wanted
 * @param {(question: Question) => void} send
 * @param {() => void} lost
 * @param {() => boolean} [busy]
 */
export function asker(wanted, send, lost, busy = running) {
  let asked = /** @type {Question | null} */ (null), waits = false, timer = /** @type {any} */ (0)
  function ask() {
    const question = wanted()
    if (waits || question === asked) return
    asked = question
    waits = true
    look(0)
    send(question)
  }
  function look(/** @type {number} */ before) {
    timer = setTimeout(() => {
      const rests = busy() ? 0 : before + 1, other = wanted() !== asked
      if (rests < (other ? OTHER : LOST)) return look(rests)
      waits = false
      if (other) ask()
      else lost()
    }, LOOK_MS)
  }
  function end() {
    waits = false
    clearTimeout(timer)
  }
  return {
    ask,
    waiting: () => waits,
    /** Nothing is waited for any more, and what the server shows is not known. */
    forget() { end(); asked = null },
    /** Returns whether what the server drew is to be shown: not while an answer is awaited, or another is wanted by then. @param {Question} shown */
    answered(shown) {
      if (waits && shown !== asked) return false
      const awaited = waits
      end()
      asked = shown
      if (awaited) ask()
      return !waits
    },
  }
}

const LINK_MS = 200 // the link follows when the hand rests: browsers refuse a hundred changes of the address in a moment

/** @type {Map<string, string>} What components keep in the address of this page, by name. */
const kept = new Map()
let keptOn = "" // the page, and the scene of a course: another's address is its own
/** @type {Map<string, [string, string][]>} What was kept on a page that was left: on coming back by the menu it is there again. */
const left = new Map()

function amend(/** @type {URL} */ address, /** @type {boolean} */ back) {
  const scene = sceneOf(address)
  if (back) kept.clear()
  if (scene !== keptOn) {
    if (kept.size) left.set(keptOn, [...kept])
    kept.clear()
    keptOn = scene
    for (const [key, value] of back ? [] : (left.get(scene) ?? [])) if (!address.searchParams.has(key)) kept.set(key, value)
    left.delete(scene)
  }
  for (const [key, value] of kept) address.searchParams.set(key, value)
}

/**
 * What a component has kept under `name` on this page, which the server may not know; `otherwise` where there is nothing.
 * @param {string} name
 * @param {number} otherwise
 */
export const keptInLink = (name, otherwise) => (sceneOf(location.href) === keptOn && kept.has(name) ? Number(kept.get(name)) : otherwise)

/**
 * The number that the address holds under `name`; `otherwise` where it holds none.
 * @param {string} name
 * @param {number} otherwise
 */
export function inLink(name, otherwise) {
  const held = new URL(location.href).searchParams.get(name)
  return held !== null && /^\d+$/.test(held) ? Number(held) : otherwise
}

/**
 * Keeps a value in the page's address, without the server, until the signal comes. Call what it returns at every change.
 * `led` is called when Back or a link has led to another address of the same page: what is shown is then the address's, not
 * one's own.
 * @param {AbortSignal} signal
 * @param {() => void} [led]
 * @returns {(name: string, value: string | number) => void}
 */
export function keepInLink(signal, led = () => {}) {
  const here = location.pathname
  let timer = /** @type {any} */ (0)
  const moved = () => {
    clearTimeout(timer)
    if (location.pathname === here) led()
  }
  addEventListener("popstate", moved, { signal })
  signal.addEventListener("abort", () => clearTimeout(timer))
  return (name, value) => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      if (!keptOn) amended(amend)
      if (keptOn !== sceneOf(location.href)) kept.clear()
      keptOn = sceneOf(location.href)
      kept.set(name, String(value))
      amendNow()
    }, LINK_MS)
  }
}
