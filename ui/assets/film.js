// @ts-check
// Films a view: the training is gone through step by step as when it is played, every figure is drawn on a canvas as it then
// stands, and the browser records that as a video. The server keeps nothing of it.

import { element } from "./shared/dom.js"
import { download, pixels } from "./shared/save.js"
import { figures, shot } from "./shared/shots.js"
import { themed } from "./shared/theme.js"

/**
 * What is filmed: a training whose steps can be shown.
 * @typedef {object} Course
 * @property {string} name of the training, for the file's name
 * @property {number[]} steps
 * @property {(step: number) => Promise<string>} show resolves when the page has drawn it, with what is said of it
 * @property {() => void} back shows again what was shown before
 */

const REST_MS = 250, FIRST_MS = 800, LAST_MS = 2500 // that a moment stands
const TICK_MS = 40 // a canvas that stands still gives no frames
const WIDEST = 1280, PAD = 16, LINE = 24 // pixels
const PLACE = '[data-testid="stMainBlockContainer"]'
const KINDS = ["video/mp4", "video/webm"]

/** Films a training and saves the video; a press of the button meanwhile ends it there. @param {HTMLElement} button @param {Course} course */
export async function film(button, course) {
  const label = button.textContent, place = document.querySelector(PLACE), canvas = element("canvas"), last = course.steps.length - 1
  let stopped = false, recorder = null
  const press = (event) => { event.stopImmediatePropagation(); stopped = true }
  button.addEventListener("click", press, { capture: true })
  try {
    for (const [i, step] of course.steps.entries()) {
      if (stopped || !button.isConnected) break
      button.textContent = `Stop · ${i + 1}/${last + 1}`
      const said = await course.show(step)
      await drawn()
      await paint(canvas, place, said, i / Math.max(last, 1))
      recorder ??= recording(canvas)
      await recorder.stands(i === last ? LAST_MS : i ? REST_MS : FIRST_MS)
    }
    const page = location.pathname.split("/").filter(Boolean).pop() ?? "home"
    if (recorder && button.isConnected) recorder.save(`film-${page}-${course.name}`.replace(/[^\w-]+/g, "-"))
  } finally {
    button.removeEventListener("click", press, { capture: true })
    button.textContent = label
    course.back()
  }
}

/** A video of the canvas: only the time counts during which a moment stands. @param {HTMLCanvasElement} canvas */
function recording(canvas) {
  const type = KINDS.find((kind) => MediaRecorder.isTypeSupported(kind)), pen = canvas.getContext("2d")
  const recorder = new MediaRecorder(canvas.captureStream(), { mimeType: type, videoBitsPerSecond: 6e6 }), parts = []
  recorder.ondataavailable = ({ data }) => parts.push(data)
  recorder.start()
  recorder.pause()
  return {
    async stands(time) {
      recorder.resume()
      for (let spent = 0; spent < time; spent += TICK_MS) {
        pen.drawImage(canvas, 0, 0, 1, 1, 0, 0, 1, 1)
        await new Promise((resolve) => setTimeout(resolve, TICK_MS))
      }
      recorder.pause()
    },
    save(name) {
      recorder.onstop = () => download(`${name}.${type === KINDS[0] ? "mp4" : "webm"}`, new Blob(parts, { type }))
      recorder.stop()
    },
  }
}

/** Draws the view on the canvas, whose size is that of the first moment. @param {HTMLCanvasElement} canvas @param {Element} place @param {string} said @param {number} share */
async function paint(canvas, place, said, share) {
  const seen = figures(place).filter(visible), edge = union(seen), pen = canvas.getContext("2d")
  const pictures = await Promise.all(seen.map(pictured))
  const color = (name, otherwise) => themed(/** @type {HTMLElement} */ (place), name, otherwise)
  const font = (size, weight = "") => `${weight} ${size}px ${color("font", "sans-serif")}`
  const top = PAD + 2 * LINE
  if (!canvas.dataset.scale) {
    const scale = Math.min(1, (WIDEST - 2 * PAD) / edge.width)
    canvas.dataset.scale = String(scale)
    Object.assign(canvas, { width: 2 * Math.round(edge.width * scale / 2) + 2 * PAD, height: 2 * Math.round((top + edge.height * scale + 4 * LINE) / 2) }) // a video's are even
  }
  const scale = Number(canvas.dataset.scale), width = canvas.width - 2 * PAD
  Object.assign(pen, { fillStyle: color("background-color", "#ffffff"), textBaseline: "top" })
  pen.fillRect(0, 0, canvas.width, canvas.height)
  pen.fillStyle = color("primary-color", "#2a55a5")
  pen.fillRect(PAD, top - 6, width * share, 3)
  seen.forEach((root, i) => {
    const at = root.getBoundingClientRect(), image = pictures[i]
    if (image) pen.drawImage(image, PAD + (at.left - edge.left) * scale, top + (at.top - edge.top) * scale, at.width * scale, at.height * scale)
  })
  pen.fillStyle = color("text-color", "#222222")
  const write = (text, size, y, weight = "") => {
    pen.font = font(size, weight)
    pen.fillText(text, PAD, y, width)
  }
  write(textOf(document, ".st-key-question_line h2") || document.title, 18, PAD / 2, "600")
  write(said, 14, PAD / 2 + LINE)
  pen.font = font(17)
  const answer = lines(textOf(place, ".st-key-answer"), width, (text) => pen.measureText(text).width)
  answer.slice(0, 3).forEach((text, row) => write(text, 17, canvas.height - (3.5 - row) * LINE))
}

/** A figure as an image; null where there is nothing to be seen yet. @param {Element} root */
async function pictured(root) {
  const taken = shot(root)
  if (!taken) return null
  if ("drawing" in taken) {
    const blob = await pixels(...taken.drawing, 1.5, "image/webp")
    return blob && createImageBitmap(blob)
  }
  const image = new Image(), { data, layout } = taken
  image.src = await /** @type {any} */ (window).Plotly.toImage({ data, layout, config: {} }, { format: "png", width: layout.width, height: layout.height })
  await image.decode()
  return image
}

const textOf = (within, where) => (/** @type {HTMLElement | null} */ (within.querySelector(where))?.innerText ?? "").replace(/\s+/g, " ").trim()

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

/**
 * A text in lines that are at most so wide.
 * @param {string} text
 * @param {number} most
 * @param {(text: string) => number} wide
 */
export function lines(text, most, wide) {
  /** @type {string[]} */
  const found = []
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const longer = found.length ? `${found[found.length - 1]} ${word}` : ""
    if (longer && wide(longer) <= most) found[found.length - 1] = longer
    else found.push(word)
  }
  return found
}
