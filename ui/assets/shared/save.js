// @ts-check
// Taking home what is seen: small buttons, the data as CSV, the picture as PNG and SVG, and the whole view as HTML.

import { csv } from "./csv.js"
import { button, element, seenTimes } from "./dom.js"
import { picture } from "./picture.js"
import { filmed } from "./shots.js"

/** @type {WeakMap<Element, () => string | unknown[][] | null>} The table behind a figure, by the figure's root: for ../saved.js. */
export const tables = new WeakMap()

/**
 * The buttons, for the caller to put where they hide nothing. `name` begins the files' names; `rows` are the lines of the
 * table, the first of them its head, or its text; `drawing` is what is saved as a picture: [SVG text, width, height].
 * @param {HTMLElement} root
 * @param {() => string} name
 * @param {() => string | unknown[][]} rows
 * @param {() => [string, number, number]} [drawing]
 */
export function saveTools(root, name, rows, drawing = () => picture(root)) {
  root.classList.add("gf-saves")
  filmed(root, () => ({ drawing: drawing() }))
  root.addEventListener("touchstart", () => root.classList.add("gf-touched"), { passive: true })
  return toolbar(root, rows, {
    CSV: () => download(`${name()}.csv`, asCsv(csv(rows()))),
    PNG: async () => download(`${name()}.png`, await pixels(...drawing())),
    SVG: () => download(`${name()}.svg`, new Blob([drawing()[0]], { type: "image/svg+xml" })),
  })
}

/**
 * The buttons by what each one does, for a figure in `root` with the table `rows`.
 * @param {HTMLElement} root
 * @param {() => string | unknown[][] | null} rows
 * @param {{ CSV?: () => unknown, PNG?: () => unknown, SVG?: () => unknown }} does
 */
export function toolbar(root, rows, does) {
  tables.set(root, rows)
  const tools = element("div", "gf-tools", "", { role: "group", "aria-label": "Save this figure" })
  const add = (sign, label, press) => { tools.appendChild(button(sign, label, press)).title = label }
  for (const [kind, save] of Object.entries(does)) add(kind, kind === "CSV" ? "Save the data behind this figure as CSV" : `Save this figure as ${kind}`, save)
  // ../stage.js listens to both.
  add("HTML", "Save as HTML: this view in one file that works without a network", (html) => html.dispatchEvent(new CustomEvent("gf-html", { bubbles: true, composed: true })))
  add("⤢", "Fill the screen with this figure, and back (f)", (full) => full.dispatchEvent(new CustomEvent("gf-full", { bubbles: true })))
  tools.onmousedown = (event) => event.preventDefault() // the focus stays where it is, and with it what is chosen there
  tools.onkeydown = (event) => event.stopPropagation() // a space presses the button, and plays nothing
  root.addEventListener("pointerenter", () => stepAside(root, tools))
  root.addEventListener("focusin", (event) => { if (!(event.relatedTarget instanceof Node && root.contains(event.relatedTarget))) stepAside(root, tools) })
  return tools
}

/**
 * Moves the buttons to the place nearest to their own where they lie on no text and no control of the figure, before they are seen.
 * @param {HTMLElement} root
 * @param {HTMLElement} tools
 */
export function stepAside(root, tools) {
  tools.style.transform = ""
  const own = tools.getBoundingClientRect(), frame = root.getBoundingClientRect()
  const taken = []
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), range = document.createRange()
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!node.textContent?.trim() || tools.contains(node)) continue
    range.selectNodeContents(node)
    taken.push(...range.getClientRects())
  }
  for (const control of root.querySelectorAll("button, input, select, textarea")) if (!tools.contains(control)) taken.push(control.getBoundingClientRect())
  const [right, down] = freePlace(own, frame, taken), times = seenTimes(root)
  if (right || down) tools.style.transform = `translate(${right / times}px, ${down / times}px)`
}

/** @typedef {{ left: number, right: number, top: number, bottom: number }} Box */

/**
 * By how much [to the right, down] a box within a frame moves to lie on none of those that are taken; to the nearest such place,
 * sideways rather than down. It stays where there is none.
 * @param {Box} box
 * @param {Box} frame
 * @param {Box[]} taken
 * @returns {[number, number]}
 */
export function freePlace(box, frame, taken) {
  const free = (/** @type {number} */ x, /** @type {number} */ y) =>
    taken.every((one) => one.left >= box.right + x || one.right <= box.left + x || one.top >= box.bottom + y || one.bottom <= box.top + y)
  if (free(0, 0)) return [0, 0]
  // A box that is pushed aside ends at an edge of what pushes it, or at the frame's.
  const inside = (/** @type {number} */ by, /** @type {number} */ low, /** @type {number} */ high) => by >= low && by <= high
  const across = [0, ...taken.flatMap((one) => [one.left - box.right - 1, one.right - box.left + 1])].filter((by) => inside(by, frame.left - box.left, Math.max(0, frame.right - box.right)))
  const along = [0, ...taken.flatMap((one) => [one.top - box.bottom - 1, one.bottom - box.top + 1])].filter((by) => inside(by, Math.min(0, frame.top - box.top), frame.bottom - box.bottom))
  const far = (/** @type {number[]} */ [x, y]) => Math.abs(x) + 2 * Math.abs(y)
  const places = across.flatMap((x) => along.map((y) => [x, y])).sort((a, b) => far(a) - far(b))
  const [x, y] = places.find((place) => free(place[0], place[1])) ?? [0, 0]
  return [x, y]
}

/** @param {string} text */
export const asCsv = (text) => new Blob([text], { type: "text/csv" })

/**
 * Hands a file to the browser.
 * @param {string} name
 * @param {Blob | null} blob
 */
export function download(name, blob) {
  if (!blob) return
  const link = element("a")
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10000)
}

/**
 * An SVG as a PNG of twice its size, or of so many times; or of another kind, where the browser makes it.
 * @param {string} text
 * @param {number} width
 * @param {number} height
 * @param {number} [times]
 * @param {string} [kind]
 * @returns {Promise<Blob | null>}
 */
export async function pixels(text, width, height, times = 2, kind = "image/png") {
  const scale = Math.min(times, 16000 / Math.max(width, height), Math.sqrt(2e8 / (width * height))) // larger ones browsers do not make
  const image = new Image(), canvas = element("canvas")
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}` // not a blob's address: that would forbid to read the canvas
  await image.decode()
  Object.assign(canvas, { width: Math.round(width * scale), height: Math.round(height * scale) })
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height)
  return new Promise((resolve) => canvas.toBlob(resolve, kind, 0.9))
}
