// @ts-check
// Films a view: the training is gone through step by step as when it is played, every figure is kept as it then stood, and the
// frames become an HTML file that runs alone, or a GIF. All of it happens in the browser: the server keeps nothing.

import { gif } from "./film_gif.js"
import { filmPage } from "./film_page.js"
import { chosen } from "./film_state.js"
import { element } from "./shared/dom.js"
import { memory } from "./shared/numbers.js"
import { download, pixels } from "./shared/save.js"
import { figures, shot } from "./shared/shots.js"
import { themed } from "./shared/theme.js"

/**
 * What is filmed: a training whose steps can be shown.
 * @typedef {object} Course
 * @property {string} name of the training, for the files' names
 * @property {number[]} steps
 * @property {number[]} marks the steps at which something happened: they are never left out
 * @property {string} library the name of Plotly's library below app/static/
 * @property {(step: number) => Promise<string>} show resolves when the page has drawn it, with what is said of it
 * @property {() => void} back shows again what was shown before
 */

const MOST_FRAMES = 60
const MOST_BYTES = 60e6 // of all frames
const REST_MS = 180 // that a frame stands
const PLACE = '[data-testid="stMainBlockContainer"]'

/** Opens the panel and films. @param {HTMLElement} root where the panel is put @param {Course} course */
export async function film(root, course) {
  const panel = opened(root)
  try {
    const made = await recorded(course, panel)
    if (made) offer(panel, made, course)
    else panel.dialog.close()
  } catch (error) {
    panel.say(error instanceof Problem ? error.message : "The film could not be made: a picture did not come. Try again, or save the figure by itself.")
    panel.bar.hidden = true
    panel.cancel.textContent = "Close"
  } finally {
    course.back()
  }
}

class Problem extends Error {}

function opened(root) {
  const dialog = root.appendChild(element("dialog", "gf-film"))
  const text = dialog.appendChild(element("p")), bar = dialog.appendChild(element("progress")), buttons = dialog.appendChild(element("div", "gf-film-buttons"))
  const cancel = buttons.appendChild(element("button", "", "Cancel"))
  const panel = { dialog, text, bar, buttons, cancel, gone: false, say: (words) => { text.textContent = words } }
  text.setAttribute("role", "status")
  bar.setAttribute("aria-label", "How much is done")
  dialog.setAttribute("aria-label", "Film of this view")
  cancel.type = "button"
  cancel.onclick = () => dialog.close()
  dialog.onclose = () => { panel.gone = true; dialog.remove() }
  for (const kind of /** @type {const} */ (["keydown", "pointerdown"])) dialog.addEventListener(kind, (event) => event.stopPropagation())
  dialog.showModal()
  return panel
}

// Goes through the training. Returns null where it was cancelled.
async function recorded(course, panel) {
  const place = document.querySelector(PLACE), steps = chosen(course.steps, course.marks, MOST_FRAMES)
  const seen = figures(place).filter(visible)
  if (!seen.length) throw new Problem("There is no figure on this view that could be filmed.")
  const known = new Map(), layouts = [], frames = []
  let bytes = 0, width = 0, height = 0
  panel.bar.max = steps.length
  for (const [i, step] of steps.entries()) {
    panel.say(`Filming: ${i + 1} of ${steps.length} moments of the training`)
    panel.bar.value = i
    const said = await course.show(step)
    await drawn()
    if (panel.gone || !panel.dialog.isConnected) return null
    const now = figures(place).filter(visible), edge = union(now), shots = []
    for (const root of now) {
      const taken = await figure(root, edge, layouts, known)
      if (taken) shots.push({ ...taken, figure: seen.includes(root) ? seen.indexOf(root) : seen.push(root) - 1 })
    }
    const frame = { step, said, answer: answerOf(place), shots }
    bytes += JSON.stringify(frame).length
    if (bytes > MOST_BYTES) throw new Problem(`This film would have more than ${memory(MOST_BYTES)}: its figures hold too many numbers. Choose a shorter text or a smaller model.`)
    ;[width, height] = [Math.max(width, Math.ceil(edge.width)), Math.max(height, Math.ceil(edge.height))]
    frames.push(frame)
  }
  const title = textOf(".st-key-question_line h2") || document.title, about = textOf(".st-key-subject_bar [data-testid=stMarkdownContainer]")
  return { title, about, width, height, layouts, frames, rest: REST_MS }
}

async function figure(root, edge, layouts, known) {
  const taken = shot(root), at = root.getBoundingClientRect()
  if (!taken) return null
  if ("drawing" in taken) {
    const [text, width, height] = taken.drawing, margin = (width - at.width) / 2 // a picture has a margin of its own
    const image = await pixels(text, width, height, 1.5, "image/webp")
    if (!image) return null
    return { box: [at.left - edge.left - margin, at.top - edge.top - margin, width, height].map(Math.round), picture: await address(image) }
  }
  const said = JSON.stringify(taken.layout)
  if (!known.has(said)) known.set(said, layouts.push(taken.layout) - 1)
  return { box: [at.left - edge.left, at.top - edge.top, at.width, at.height].map(Math.round), data: packed(taken.data), layout: known.get(said) }
}

// Plotly keeps what it has unpacked beside what was packed.
const packed = (data) => JSON.parse(JSON.stringify(data, (key, value) => (key === "_inputArray" ? undefined : value)))

const address = (blob) => new Promise((resolve, reject) => {
  const reader = new FileReader()
  reader.onload = () => resolve(reader.result)
  reader.onerror = reject
  reader.readAsDataURL(blob)
})

const textOf = (where) => (/** @type {HTMLElement | null} */ (document.querySelector(where))?.innerText ?? "").trim()
const answerOf = (place) => [...place.querySelectorAll(".st-key-answer")].map((node) => node.innerText.replace(/\s+/g, " ").trim()).join(" ")

// What is folded is no part of the film.
function visible(root) {
  const { width, height } = root.getBoundingClientRect()
  return width > 1 && height > 1 && !root.closest('[data-testid="stExpander"]')
}

function union(nodes) {
  const boxes = nodes.map((node) => node.getBoundingClientRect())
  const left = Math.min(...boxes.map((b) => b.left)), top = Math.min(...boxes.map((b) => b.top))
  return { left, top, width: Math.max(...boxes.map((b) => b.right)) - left, height: Math.max(...boxes.map((b) => b.bottom)) - top }
}

// The messages of a step have come; the components draw them in the frames that follow. A hidden tab has no frames.
const drawn = () => new Promise((resolve) => {
  setTimeout(resolve, 400)
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve, 30)))
})

/** The colours and the font of the page. @param {HTMLElement} node */
const lookOf = (node) => ({
  background: themed(node, "background-color", "#ffffff"), text: themed(node, "text-color", "#222222"), panel: themed(node, "secondary-background-color", "#f2f4f7"),
  line: themed(node, "border-color", "#d8dde5"), accent: themed(node, "primary-color", "#2a55a5"), font: themed(node, "font", "sans-serif"),
})

// The film plays in the panel, and can be saved.
async function offer(panel, made, course) {
  const { dialog, buttons, bar } = panel, look = lookOf(dialog), plotly = made.frames.some(({ shots }) => shots.some(({ data }) => data))
  const library = plotly ? await (await fetch(new URL(`../${course.library}`, import.meta.url))).text() : ""
  const page = new Blob([filmPage(made, look, library)], { type: "text/html" })
  const name = `film-${location.pathname.split("/").filter(Boolean).pop() ?? "home"}-${course.name}`.replace(/[^\w-]+/g, "-")
  const preview = element("iframe"), from = URL.createObjectURL(page)
  Object.assign(preview, { src: from, title: "The film", sandbox: "allow-scripts" })
  bar.before(preview)
  bar.hidden = true
  dialog.classList.add("gf-film-ready")
  dialog.addEventListener("close", () => URL.revokeObjectURL(from))
  const count = `${made.frames.length} of ${course.steps.length} moments`
  panel.say(count)
  const save = element("button", "gf-film-save", `Save HTML (${memory(page.size)})`), small = element("button", "gf-film-save", "Save GIF")
  for (const button of [save, small]) button.type = "button"
  save.title = "A page that runs alone, without a network: its frames are numbers"
  save.onclick = () => download(`${name}.html`, page)
  let picture = null
  small.onclick = async () => {
    small.disabled = true
    bar.hidden = false
    const draw = (data, layout) => /** @type {any} */ (window).Plotly.toImage({ data, layout, config: {} }, { format: "png", width: layout.width, height: layout.height })
    picture ??= await gif(made, look, draw, (done) => {
      panel.say(`Drawing the GIF: ${done + 1} of ${made.frames.length}`)
      bar.value = (bar.max * done) / made.frames.length
      return !panel.gone
    }).catch(() => null)
    bar.hidden = true
    small.disabled = false
    if (panel.gone) return
    panel.say(picture ? count : "The GIF could not be drawn. The HTML file holds the same film.")
    if (!picture) return
    small.textContent = `Save GIF (${memory(picture.size)})`
    download(`${name}.gif`, picture)
  }
  panel.cancel.textContent = "Close"
  buttons.prepend(save, small)
  save.focus()
}
