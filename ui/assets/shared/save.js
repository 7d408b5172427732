// @ts-check
// Taking home what is seen: three small buttons, the data as CSV, the picture as PNG and SVG.

import { csv } from "./csv.js"
import { button, element } from "./dom.js"
import { picture } from "./picture.js"
import { filmed } from "./shots.js"

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
  return toolbar({
    CSV: () => download(`${name()}.csv`, asCsv(csv(rows()))),
    PNG: async () => download(`${name()}.png`, await pixels(...drawing())),
    SVG: () => download(`${name()}.svg`, new Blob([drawing()[0]], { type: "image/svg+xml" })),
  })
}

/**
 * The three buttons by what each one does.
 * @param {{ CSV: () => unknown, PNG: () => unknown, SVG: () => unknown }} does
 */
export function toolbar(does) {
  const tools = element("div", "gf-tools", "", { role: "group", "aria-label": "Save this figure" })
  const add = (sign, label, press) => { tools.appendChild(button(sign, label, press)).title = label }
  for (const [kind, save] of Object.entries(does)) add(kind, kind === "CSV" ? "Save the data behind this figure as CSV" : `Save this figure as ${kind}`, save)
  add("⤢", "Fill the screen with this figure, and back (f)", (full) => full.dispatchEvent(new CustomEvent("gf-full", { bubbles: true }))) // ../stage_full.js listens
  tools.onmousedown = (event) => event.preventDefault() // the focus stays where it is, and with it what is chosen there
  tools.onkeydown = (event) => event.stopPropagation() // a space presses the button, and plays nothing
  return tools
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
