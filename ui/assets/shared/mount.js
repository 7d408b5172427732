// @ts-check
// How every component lives: it is made once, told of every message, and removed when its place is gone.

import { alone, running } from "./dom.js"

/**
 * What Streamlit hands to a component.
 * @typedef {object} Message
 * @property {any} data what the page sent
 * @property {HTMLElement} parentElement its place; a shadow root where styles are isolated
 * @property {string} [key]
 * @property {string} [module] where the component's own module lies, without its ending
 * @property {(name: string, value: any) => void} setStateValue
 * @property {(name: string, value: any) => void} setTriggerValue
 *
 * What a component remembers. `root` is its lasting element; `send` and `trigger` tell the server, `again`
 * takes the server's last message once more. `whole` makes one message of the last, where it tells only what is new.
 * @typedef {{ root: HTMLElement, send?: Message["setStateValue"], trigger?: Message["setTriggerValue"], again?: () => void, whole?: (sent: any) => any, [field: string]: any }} Self
 *
 * @typedef {object} Life
 * @property {(place: HTMLElement, key: string, signal: AbortSignal) => Self} create puts `root` into its place; `signal` ends what goes on outside of `root`: listeners, players
 * @property {(self: Self, data: any, fresh: boolean, key: string) => void} update `fresh` is true the first time
 * @property {(self: Self) => void} [remove] ends what the signal does not. An observer of `root` ends with it, and what a timer sends later is dropped
 */

const PATIENCE_MS = 30_000, OFTEN_MS = 10

/** @type {WeakMap<Element, { module: string, data: any }>} What each component on the page was last sent, by its `root`: for ../saving.js. */
export const messages = new WeakMap()

/** @type {{ place: HTMLElement, say: () => void, busy: () => boolean, until: number }[]} What waits to be sent, the oldest first. */
const line = []
let timer = /** @type {any} */ (0)

/**
 * Sends what components have to say while nothing else is under way, in the order in which they said it. Streamlit 1.67 takes a
 * request of a part of the page together with the one for another page that waits, and the click that led there is lost; one that
 * comes while that page is being made leaves it blank. So it waits for as long as a busy machine may take.
 * @template {(name: string, value: any) => void} Send
 * @param {HTMLElement} place
 * @param {Send} send
 * @param {() => boolean} [busy]
 * @returns {(name: string, value: any) => void}
 */
export function inTurn(place, send, busy = running) {
  return (name, value) => {
    line.push({ place, say: () => send(name, value), busy, until: Date.now() + PATIENCE_MS })
    if (!timer) go()
  }
}

function go() {
  const [{ place, say, busy, until }] = line
  timer = 0
  if (!busy() || Date.now() >= until) {
    line.shift()
    if (place.isConnected) say()
  }
  if (line.length && !timer) timer = setTimeout(go, OFTEN_MS) // of two parts of the page that ask in one moment, Streamlit draws the first
}

/**
 * Hands components what they draw, past Streamlit, by their keys. One that is not on the page gets nothing.
 * @param {Record<string, any>} parts as ui/frames.py and ui/live.py have them
 */
export function handOut(parts) {
  for (const [key, detail] of Object.entries(parts)) document.querySelector(`.st-key-${CSS.escape(key)} [data-gf-part]`)?.dispatchEvent(new CustomEvent("gf-message", { detail }))
}

/**
 * The function that Streamlit calls with each message, and that returns what ends the component.
 * @param {Life} life
 * @returns {(message: Message) => (() => void) | void}
 */
export function component({ create, update, remove }) {
  /** @type {WeakMap<HTMLElement, { self: Self, turn: number, ended: AbortController }>} */
  const instances = new WeakMap()
  return ({ data, parentElement, key, module = "", setStateValue, setTriggerValue }) => {
    if (!data) return
    const name = String(key ?? "x")
    const take = (/** @type {Self} */ self, /** @type {any} */ sent, /** @type {boolean} */ first) => {
      messages.set(self.root, { module, get data() { return self.whole?.(sent) ?? sent } })
      update(self, sent, first, name)
    }
    let held = instances.get(parentElement)
    const fresh = !held
    if (!held) {
      const ended = new AbortController()
      instances.set(parentElement, (held = { self: create(parentElement, name, ended.signal), turn: 0, ended }))
      const { root } = held.self
      root.dataset.gfPart = ""
      root.addEventListener("gf-message", (/** @type {CustomEvent} */ event) => take(held.self, event.detail, false))
    }
    const { self } = held, turn = ++held.turn
    const again = () => { if (parentElement.isConnected) take(self, data, false) }
    const said = (/** @type {Message["setStateValue"]} */ send) => (alone() ? send : inTurn(parentElement, send))
    Object.assign(self, { send: said(setStateValue), trigger: said(setTriggerValue), again })
    take(self, data, fresh)
    return () => {
      // Streamlit ends a message's drawing also where the next message has overtaken it: then the place is still there.
      if (held.turn !== turn || parentElement.isConnected) return
      held.ended.abort()
      remove?.(self)
      self.root.remove()
      instances.delete(parentElement)
    }
  }
}
