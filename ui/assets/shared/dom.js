// @ts-check
// Elements, made in one line. Text is only ever put in as text.

const VECTOR = "http://www.w3.org/2000/svg"

/** The app's root, wherever a host has put that: it serves this module as app/static/<a hash>/ui/assets/shared/dom.js. */
export const ROOT = new URL("../../../../../../", import.meta.url)

/** @typedef {Record<string, string | number>} Attributes */

/**
 * An HTML element with a class, a text and attributes; a button submits no form unless its attributes say so.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {string} [name]
 * @param {string} [text]
 * @param {Attributes} [attributes]
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, name, text, attributes = {}) {
  const node = document.createElement(tag)
  if (name) node.className = name
  if (text !== undefined) node.textContent = text
  if (tag === "button") node.setAttribute("type", "button")
  return dressed(node, attributes)
}

/**
 * The same, put into its parent.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Element} parent
 * @param {Tag} tag
 * @param {string} [name]
 * @param {string} [text]
 * @param {Attributes} [attributes]
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function within(parent, tag, name, text, attributes) {
  return parent.appendChild(element(tag, name, text, attributes))
}

/**
 * A button that says what it does.
 * @param {string} text
 * @param {string} label
 * @param {(button: HTMLButtonElement) => void} [press]
 */
export function button(text, label, press) {
  const made = element("button", "", text, { "aria-label": label })
  if (press) made.onclick = () => press(made)
  return made
}

/**
 * A slider from 0 on, in whole steps unless its attributes say otherwise.
 * @param {string} label
 * @param {Attributes} [attributes]
 */
export const rangeInput = (label, attributes) => element("input", "", "", { type: "range", min: 0, step: 1, "aria-label": label, ...attributes })

/**
 * An SVG element with attributes, put into its parent where one is given.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} [attributes]
 * @param {Element | null} [parent]
 * @param {string} [text]
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function vector(tag, attributes = {}, parent = null, text) {
  const node = dressed(document.createElementNS(VECTOR, tag), attributes)
  if (text !== undefined) node.textContent = text
  parent?.appendChild(node)
  return node
}

/**
 * @template {Element} Node
 * @param {Node} node
 * @param {Attributes} attributes
 */
function dressed(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value))
  return node
}

/**
 * The element around what an event met, itself included, that a selector names.
 * @param {Event} event
 * @param {string} selector
 * @returns {HTMLElement | null}
 */
export const around = (event, selector) => (event.target instanceof Element ? event.target.closest(selector) : null)

/**
 * Writes a text only where it is another: what is selected, or read aloud, is not disturbed.
 * @param {Element} node
 * @param {string} text
 */
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text
}

const segments = new Intl.Segmenter(undefined, { granularity: "grapheme" })

/**
 * The characters of a text as a reader counts them: an emoji of several signs is one.
 * @param {string} text
 */
export const characters = (text) => Array.from(segments.segment(text), ({ segment }) => segment)

/**
 * The first `most` of them.
 * @param {string} text
 * @param {number} most
 */
export function beginning(text, most) {
  if (text.length <= most) return text
  let end = 0
  for (const { index, segment } of segments.segment(text)) {
    if (most-- <= 0) break
    end = index + segment.length
  }
  return text.slice(0, end)
}

/**
 * Makes `cells` as many as `count`, at the end.
 * @template {{ remove: () => void }} Cell
 * @param {Cell[]} cells
 * @param {number} count
 * @param {(index: number) => Cell} make puts the cell into its place
 */
export function resize(cells, count, make) {
  while (cells.length > count) cells.pop()?.remove()
  while (cells.length < count) cells.push(make(cells.length))
}

/**
 * How much larger than its own pixels an element is seen: in stage mode the page is drawn larger.
 * @param {HTMLElement} node
 */
export const seenTimes = (node) => (node.offsetWidth ? node.getBoundingClientRect().width / node.offsetWidth : 1) || 1

/**
 * Where in an element an event is, [x, y] in the element's own pixels.
 * @param {HTMLElement} node
 * @param {{ clientX: number, clientY: number }} event
 * @returns {[number, number]}
 */
export function pointIn(node, event) {
  const box = node.getBoundingClientRect(), times = seenTimes(node)
  return [(event.clientX - box.left) / times, (event.clientY - box.top) / times]
}

const onStage = (/** @type {string} */ name) => Number(document.documentElement.style.getPropertyValue(name))

/** The window's height in the page's own pixels, and what a stage has spare: see ../stage_fit.js. */
export const windowHeight = () => innerHeight / (onStage("--gf-zoom") || 1) + onStage("--gf-spare")

const state = () => document.querySelector('[data-testid="stApp"]')?.getAttribute("data-test-script-state")

/** Whether the server is at work on the page, or is asked to be. */
export const running = () => state() !== "notRunning" || leaving()

/** Whether this is a saved file, where no server answers. */
export const alone = () => state() === "saved"

const LEAVING_MS = 10_000 // for an address that leads to no page, whose entry of the menu will never be lit
let asked = "", since = 0

/**
 * Whether another page is asked for than that which is shown. Until the server has begun with it, Streamlit says that nothing runs:
 * a click on the menu lights its entry before the address changes, a link of the browser's history changes the address before that.
 */
function leaving() {
  const lit = /** @type {HTMLAnchorElement | null} */ (document.querySelector('a[data-testid="stSidebarNavLink"][aria-current="page"]'))
  if (!lit || bare(lit.pathname) === bare(location.pathname)) return false
  const both = `${lit.pathname} ${location.pathname}`
  if (both !== asked) [asked, since] = [both, Date.now()]
  return Date.now() - since < LEAVING_MS
}
const bare = (/** @type {string} */ path) => path.replace(/\/+$/, "")
