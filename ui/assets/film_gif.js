// @ts-check
// A film as a GIF, drawn and packed in the browser: nothing is sent anywhere.

import { GIFEncoder, applyPalette, quantize } from "./film_pack.js"

/**
 * @typedef {import("./film_player.js").Film} Film
 * @typedef {import("./film_page.js").Look} Look
 */

const WIDEST = 1000 // pixels
const FIRST_MS = 800, LAST_MS = 2500 // the first and the last frame stand longer
const PAD = 16, LINE = 22

/**
 * @param {Film} film
 * @param {Look} look
 * @param {(data: any[], layout: any) => Promise<string>} drawn the address of a picture of one of Plotly's figures
 * @param {(done: number) => boolean} went told of every frame; false ends it
 * @returns {Promise<Blob | null>}
 */
export async function gif(film, look, drawn, went) {
  const scale = Math.min(1, (WIDEST - 2 * PAD) / film.width), width = Math.round(film.width * scale) + 2 * PAD
  const canvas = document.createElement("canvas"), pen = canvas.getContext("2d", { willReadFrequently: true })
  const font = (size, weight = "") => `${weight} ${size}px ${look.font}`
  pen.font = font(16)
  const answers = film.frames.map(({ answer }) => lines(answer, width - 2 * PAD, (text) => pen.measureText(text).width))
  const top = PAD + 2 * LINE, under = top + Math.round(film.height * scale) + 8
  Object.assign(canvas, { width, height: under + LINE * Math.max(...answers.map((one) => one.length)) + PAD })
  const file = GIFEncoder(), last = film.frames.length - 1
  for (const [i, frame] of film.frames.entries()) {
    if (!went(i)) return null
    Object.assign(pen, { fillStyle: look.background, textBaseline: "top" })
    pen.fillRect(0, 0, canvas.width, canvas.height)
    pen.fillStyle = look.text
    pen.font = font(17, "600")
    pen.fillText(film.title, PAD, PAD / 2, width - 2 * PAD)
    pen.font = font(14)
    pen.fillText(frame.said, PAD, PAD / 2 + LINE, width - 2 * PAD)
    pen.fillStyle = look.accent
    pen.fillRect(PAD, PAD / 2 + 2 * LINE - 2, ((width - 2 * PAD) * i) / Math.max(last, 1), 3)
    for (const { box, data, layout, picture } of frame.shots) {
      const image = new Image()
      image.src = picture ?? (await drawn(data, structuredClone(film.layouts[layout])))
      await image.decode()
      pen.drawImage(image, PAD + box[0] * scale, top + box[1] * scale, box[2] * scale, box[3] * scale)
    }
    pen.fillStyle = look.text
    pen.font = font(16)
    answers[i].forEach((text, row) => pen.fillText(text, PAD, under + row * LINE))
    const { data } = pen.getImageData(0, 0, canvas.width, canvas.height)
    const palette = quantize(data, 256)
    const delay = i === last ? LAST_MS : i ? film.rest : FIRST_MS
    file.writeFrame(applyPalette(data, palette), canvas.width, canvas.height, { palette, delay })
    await new Promise((resolve) => setTimeout(resolve)) // the page stays alive meanwhile
  }
  file.finish()
  return new Blob([file.bytes()], { type: "image/gif" })
}

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
