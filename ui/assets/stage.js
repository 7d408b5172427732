// @ts-check
// Stage mode: larger, without chrome, with a code for the room. Key p, or stage=1 in the address. Mounted once: ui/stage/draw.py.

import { button, element, resize, running, within, write } from "./shared/dom.js"
import { amendNow, sceneOf, watched } from "./shared/history.js"
import { component } from "./shared/mount.js"
import { follow, zoom } from "./stage_fit.js"
import { freeze, isFrozen, release } from "./stage_freeze.js"
import { back, figureAt, fill, fills, largest } from "./stage_full.js"
import { rest, resting } from "./stage_rest.js"
import { createRoom, leadRoom, openRoom, squares, updateRoom } from "./stage_room.js"
import { asked, forTheRoom, tab } from "./stage_state.js"

const TOLD_MS = 300 // an address that rests is told to the server, which makes the code
const html = document.documentElement

function create(place, _, signal) {
  const root = within(place, "div", "gf-stage-ui")
  const frozen = button("❄", "Freeze: nothing moves until you release it (key z)", () => act(self, "freeze"))
  const tools = within(root, "div", "gf-stage-tools", "", { role: "group", "aria-label": "Stage" })
  const small = button("", "A QR code: phones open this view", () => self.card.showModal())
  small.classList.add("gf-stage-code")
  tools.append(frozen, button("?", "Ask the room", () => openRoom(self.room)), button("⤢", "Fill the screen with the figure (key f)", () => act(self, "full")), button("✕", "Leave the stage (Esc or p)", () => act(self, "stage")))
  root.append(small)
  for (const one of root.querySelectorAll("button")) one.title = one.getAttribute("aria-label") ?? ""
  const runs = within(root, "div", "gf-stage-runs", "", { role: "group", "aria-label": "Running trainings" })
  const card = within(root, "dialog", "gf-stage-card", "", { "aria-label": "For the room" })
  card.onclick = () => card.close()
  /** @type {any} */
  const self = { root, frozen, small, card, runs, running: [], on: false, at: null, stop: null, timer: 0, told: "", scene: sceneOf(location.href) }
  self.room = createRoom(root, (done) => self.trigger?.("room", done))
  listen(self, signal)
  resting(signal)
  const menu = new MutationObserver(() => drawRuns(self))
  menu.observe(document.querySelector('[data-testid="stApp"]') ?? document.body, { childList: true, subtree: true })
  signal.addEventListener("abort", () => menu.disconnect())
  watched(() => moved(self), signal)
  turn(self, tab.staged)
  return self
}

function listen(self, signal) {
  const options = { signal, capture: true }
  document.addEventListener("pointerover", (event) => { self.at = event.target }, options)
  document.addEventListener("gf-stage", () => turn(self, !self.on), options)
  document.addEventListener("gf-release", () => { if (fills()) back(); if (isFrozen()) thaw(self) }, options)
  document.addEventListener("gf-rest", () => { if (self.on) rest() }, options)
  document.addEventListener("gf-lead", (event) => { if (lead(self, /** @type {CustomEvent} */ (event).detail)) event.preventDefault() }, options)
  document.addEventListener("gf-ask-room", (event) => openRoom(self.room, /** @type {CustomEvent} */ (event).detail), options)
  document.addEventListener("gf-full", (event) => { const found = figureAt(/** @type {Element} */ (event.target)); if (found) fill(found) }, options)
  document.addEventListener("gf-html", () => { import("./saving.js").then(({ openSaving }) => openSaving(self.root, self.saves)) }, options)
  document.addEventListener("keydown", (event) => {
    const from = event.composedPath()[0], writing = from instanceof Element && (from.matches("input:not([type=range], [type=radio], [type=checkbox], [type=button]), textarea, select") || /** @type {HTMLElement} */ (from).isContentEditable)
    const over = [...document.querySelectorAll("dialog:modal, [role=dialog]:not([popover], [hidden])")]
    if (over.some((one) => !one.matches(".gf-tour-ask"))) return
    const what = asked(event, writing, over.length > 0)
    if (!what || (what === "leave" && writing && !self.on)) return
    if (what === "leave" && writing) /** @type {HTMLElement} */ (from).blur() // what is written in is left first
    else if (!act(self, what)) return
    event.preventDefault()
    event.stopPropagation()
  }, options)
}

/** Does what a key or a button asks for; whether there was anything to do. */
function act(self, what) {
  if (what === "stage") { turn(self, !self.on); return true }
  if (what === "full") return full(self)
  if (what === "freeze") {
    if (isFrozen()) thaw(self)
    else if (self.on) { freeze(); self.frozen.setAttribute("aria-pressed", "true") }
    return true
  }
  if (fills()) { back(); return true }
  if (isFrozen()) { thaw(self); return true }
  if (document.querySelector(":popover-open, [data-testid=stPopoverBody], [role=listbox]:not(dialog *)")) return false // what lies on top goes first
  if (self.on) { turn(self, false); return true }
  return false
}

/** The cards of trainings that go on, whose menu is not on the stage. */
function drawRuns(self) {
  if (!self.on) return
  const cards = /** @type {HTMLElement[]} */ ([...document.querySelectorAll('[data-testid="stSidebar"] [class*="st-key-card_"]')])
  resize(self.running, cards.length, (i) => {
    const made = self.runs.appendChild(button("", "", () => self.running[i].card.querySelector("a")?.click()))
    return { made, remove: () => made.remove() }
  })
  cards.forEach((card, i) => {
    const link = card.querySelector("a")?.textContent ?? "", said = [card.querySelector("p"), card.querySelector(".gf-follow-text")].map((one) => one?.textContent).filter(Boolean).join(" · ")
    self.running[i].card = card
    write(self.running[i].made, said)
    self.running[i].made.setAttribute("aria-label", `${link}: ${said}`)
  })
}

/** A presenter's keys while something of the stage's own lies over the page; whether they led anywhere. @param {any} self @param {number} by */
function lead(self, by) {
  if (!self.card.open) return leadRoom(self.room, by)
  self.card.close()
  return true
}

function thaw(self) {
  release()
  self.frozen.setAttribute("aria-pressed", "false")
}

function full(self) {
  if (fills()) { back(); return true }
  const focused = document.activeElement && document.activeElement !== document.body ? figureAt(document.activeElement) : null
  const found = (self.at?.isConnected ? figureAt(self.at) : null) ?? focused ?? (self.on ? largest(document) : null)
  if (found) fill(found)
  return found !== null
}

function turn(self, on) {
  self.on = tab.staged = on
  html.classList.toggle("gf-stage", on)
  zoom(on)
  drawRuns(self)
  self.stop?.()
  self.stop = on ? follow() : null
  if (!on) {
    if (isFrozen()) thaw(self)
    self.card.close()
  }
  window.dispatchEvent(new Event("resize")) // what measures the window measures it again
  amendNow()
  moved(self)
}

function moved(self) {
  const scene = sceneOf(location.href)
  if (scene !== self.scene) {
    self.scene = scene
    if (fills()) back()
    if (isFrozen()) thaw(self)
  }
  clearTimeout(self.timer)
  if (self.on) self.timer = setTimeout(() => tell(self), TOLD_MS)
}

// Not while the page is being made: a request for this component alone would end that run, and leave a blank page.
function tell(self) {
  if (running()) { self.timer = setTimeout(() => tell(self), TOLD_MS); return }
  const shown = forTheRoom(location.href)
  if (shown === self.told || !self.send) return
  self.told = shown
  self.send("address", shown)
}

function update(self, data) {
  self.saves = data.saves
  updateRoom(self.room, data.room, data.said)
  const { code } = data
  if (!code || self.drawn === JSON.stringify(code)) return
  self.drawn = JSON.stringify(code)
  const drawn = code.path ? [squares(code, "A QR code for this view")] : []
  self.small.replaceChildren(...drawn.map((one) => one.cloneNode(true)))
  self.small.classList.toggle("gf-stage-none", !drawn.length)
  if (!drawn.length) write(self.small, "QR")
  const words = code.address ? (drawn.length ? "" : "This view's address is too long for a code.") : "Phones have no address to open."
  self.card.replaceChildren(...drawn, element("p", "gf-stage-address", code.address), element("p", "", [words, code.note].filter(Boolean).join(" ")), button("Close", "Close the code", () => self.card.close()))
}

function remove(self) {
  clearTimeout(self.timer)
  self.stop?.()
  release()
}

export default component({ create, update, remove })
