// @ts-check
// Follows what goes on: asks the server's route, draws the bar and the figures, and asks for the page where its state is another. See ui/live.py.

import { element, ROOT, within } from "./shared/dom.js"
import { component, handOut } from "./shared/mount.js"

/**
 * What is sent, and what the route answers.
 * @typedef {object} Data
 * @property {string} token what to ask about
 * @property {string} state another one: the page has to be drawn again
 * @property {string} version another one: something has changed
 * @property {number} every seconds between two questions
 * @property {number | null} share of the bar, 0 to 1; null: no bar
 * @property {string} text
 * @property {Record<string, string>} [figures] messages of figures by their keys: see ui/players/plot.py
 */

const IDLE_MS = 1000 // a page that is never idle is asked for after so long
const REST_MS = 1000 // a page that was drawn stands so long at least
const PATIENCE_MS = 5000 // for an answer
const MOST = 16 // times the usual wait, where the server does not answer

function create(place) {
  const root = within(place, "div", "gf-follow"), words = within(root, "div", "gf-follow-text"), bar = within(root, "div", "gf-follow-bar", "", { role: "progressbar" })
  bar.append(element("div"))
  return { root, words, bar, data: /** @type {any} */ (null), version: "", state: "", drawn: 0, failed: 0, timer: /** @type {any} */ (0), trigger: /** @type {any} */ (undefined) }
}

function update(self, /** @type {Data} */ data) {
  Object.assign(self, { data, version: data.version, state: data.state, drawn: performance.now(), failed: 0 })
  draw(self, data)
  later(self)
}

function draw(self, { share, text }) {
  self.root.hidden = share === null
  if (share === null) return
  self.words.textContent = text
  self.bar.setAttribute("aria-label", text)
  self.bar.setAttribute("aria-valuenow", String(Math.round(100 * share)))
  self.bar.firstChild.style.width = `${100 * share}%`
}

/**
 * Milliseconds until the next question, after so many that were not answered.
 * @param {number} every seconds
 * @param {number} failed
 */
export const next = (every, failed) => 1000 * every * Math.min(MOST, 2 ** failed)

function later(self) {
  clearTimeout(self.timer)
  self.timer = setTimeout(() => ask(self), next(self.data.every, self.failed))
}

async function ask(self) {
  const { token } = self.data
  /** @type {Data | null} */
  let told = null
  try {
    const answer = await fetch(new URL(`live/${token}?since=${self.version}`, ROOT), { cache: "no-store" })
    if (answer.status === 404) told = { ...self.data, state: "" } // the server does not know of it any more
    else if (answer.status === 200) told = await answer.json()
    self.failed = answer.ok || answer.status === 404 ? 0 : self.failed + 1
  } catch {
    self.failed++
  }
  if (!self.root.isConnected || token !== self.data.token) return
  if (told) {
    self.version = told.version
    self.state = told.state
    draw(self, told)
    handOut(told.figures ?? {})
  }
  if (self.state !== self.data.state) again(self) // told now, or before: no answer came to the last request
  else later(self)
}

// Where the browser is busy drawing, Streamlit takes this request together with a click of that moment, and answers one of them
// only: so it is made when the browser is idle, and once more where no answer comes.
function again(self) {
  const { data } = self, wait = Math.max(0, REST_MS - (performance.now() - self.drawn))
  clearTimeout(self.timer)
  self.timer = setTimeout(() => whenIdle(() => {
    if (!self.root.isConnected || self.data !== data) return
    self.trigger?.("changed", performance.now())
    self.timer = setTimeout(() => ask(self), PATIENCE_MS)
  }), wait)
}

function whenIdle(/** @type {() => void} */ act) {
  if (window.requestIdleCallback) window.requestIdleCallback(act, { timeout: IDLE_MS })
  else setTimeout(act)
}

export default component({ create, update, remove: (self) => clearTimeout(self.timer) })
