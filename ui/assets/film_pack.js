// @ts-check
// A GIF of several frames (GIF89a, CompuServe 1990): colours chosen by median cut, codes packed by LZW. Written here
// because nothing of it is on PyPI, and a figure's few colours need no more.

/** @typedef {[number, number, number]} Colour */

const BITS = 5 // of a channel, for counting: 32,768 kinds of colour
const kind = (r, g, b) => ((r >> (8 - BITS)) << (2 * BITS)) | ((g >> (8 - BITS)) << BITS) | (b >> (8 - BITS))

/**
 * At most so many colours that stand for those of a picture: boxes of colours are cut where they are widest, at the
 * middle of their pixels (Heckbert 1982).
 * @param {Uint8ClampedArray} rgba
 * @param {number} most
 * @returns {Colour[]}
 */
export function quantize(rgba, most) {
  /** @type {Map<number, number[]>} */
  const found = new Map() // kind -> sums of r, g, b, and how many
  for (let i = 0; i < rgba.length; i += 4) {
    const key = kind(rgba[i], rgba[i + 1], rgba[i + 2])
    const sum = found.get(key) ?? [0, 0, 0, 0]
    if (!sum[3]) found.set(key, sum)
    for (let c = 0; c < 3; c++) sum[c] += rgba[i + c]
    sum[3]++
  }
  const points = [...found.values()].map(([r, g, b, n]) => ({ at: [r / n, g / n, b / n], n }))
  const boxes = [points]
  while (boxes.length < most) {
    const spread = boxes.map((box) => (box.length < 2 ? { wide: 0, along: 0 } : widest(box)))
    const next = spread.reduce((best, one, i) => (one.wide > spread[best].wide ? i : best), 0)
    if (!spread[next].wide) break
    const box = boxes[next].sort((a, b) => a.at[spread[next].along] - b.at[spread[next].along])
    const half = box.reduce((sum, one) => sum + one.n, 0) / 2
    let count = 0, cut = 1
    for (; cut < box.length; cut++) if ((count += box[cut - 1].n) >= half) break
    cut = Math.min(cut, box.length - 1)
    boxes.splice(next, 1, box.slice(0, cut), box.slice(cut))
  }
  return boxes.map(mean)
}

/** The channel along which colours differ most, and by how much. */
function widest(box) {
  const ranges = [0, 1, 2].map((c) => {
    const values = box.map((one) => one.at[c])
    return Math.max(...values) - Math.min(...values)
  })
  const along = ranges.indexOf(Math.max(...ranges))
  return { wide: ranges[along], along }
}

/** @returns {Colour} */
function mean(box) {
  const count = box.reduce((sum, one) => sum + one.n, 0)
  const of = (c) => Math.round(box.reduce((sum, one) => sum + one.at[c] * one.n, 0) / count)
  return [of(0), of(1), of(2)]
}

/**
 * The place in the palette of each pixel's nearest colour.
 * @param {Uint8ClampedArray} rgba
 * @param {Colour[]} palette
 */
export function applyPalette(rgba, palette) {
  const known = new Int16Array(1 << (3 * BITS)).fill(-1), out = new Uint8Array(rgba.length / 4)
  for (let i = 0; i < out.length; i++) {
    const r = rgba[4 * i], g = rgba[4 * i + 1], b = rgba[4 * i + 2], key = kind(r, g, b)
    if (known[key] < 0) {
      let best = Infinity
      palette.forEach((colour, place) => {
        const far = (colour[0] - r) ** 2 + (colour[1] - g) ** 2 + (colour[2] - b) ** 2
        if (far < best) [best, known[key]] = [far, place]
      })
    }
    out[i] = known[key]
  }
  return out
}

/** Frames are added one after the other; `bytes` is the file, which plays for ever. */
export function GIFEncoder() {
  /** @type {number[]} */
  const file = []
  const short = (n) => file.push(n & 255, (n >> 8) & 255)
  return {
    /**
     * @param {Uint8Array} pixels places in the palette
     * @param {number} width
     * @param {number} height
     * @param {{palette: Colour[], delay: number}} look delay in milliseconds
     */
    writeFrame(pixels, width, height, { palette, delay }) {
      if (!file.length) {
        file.push(...ascii("GIF89a"))
        short(width), short(height)
        file.push(0, 0, 0) // each frame has its own colours
        file.push(0x21, 0xff, 11, ...ascii("NETSCAPE2.0"), 3, 1, 0, 0, 0) // again and again
      }
      const depth = Math.max(2, Math.ceil(Math.log2(Math.max(2, palette.length))))
      file.push(0x21, 0xf9, 4, 0)
      short(Math.round(delay / 10))
      file.push(0, 0, 0x2c, 0, 0, 0, 0)
      short(width), short(height)
      file.push(0x80 | (depth - 1))
      for (let i = 0; i < 1 << depth; i++) file.push(...(palette[i] ?? [0, 0, 0]))
      file.push(depth)
      const codes = lzw(pixels, depth)
      for (let i = 0; i < codes.length; i += 255) {
        const part = codes.slice(i, i + 255)
        file.push(part.length, ...part)
      }
      file.push(0)
    },
    finish: () => file.push(0x3b),
    bytes: () => Uint8Array.from(file),
  }
}

const ascii = (text) => [...text].map((letter) => letter.charCodeAt(0))

/**
 * Variable-length codes for runs of pixels that came before (Welch 1984), as GIF packs them: lowest bits first.
 * @param {Uint8Array} pixels
 * @param {number} depth bits of a pixel
 */
export function lzw(pixels, depth) {
  const clear = 1 << depth, end = clear + 1
  /** @type {number[]} */
  const out = []
  /** @type {Map<number, number>} */
  let known = new Map()
  let next = end + 1, size = depth + 1, held = 0, bits = 0
  const emit = (code) => {
    held |= code << bits
    for (bits += size; bits >= 8; bits -= 8, held >>>= 8) out.push(held & 255)
  }
  emit(clear)
  let run = pixels[0]
  for (let i = 1; i < pixels.length; i++) {
    const key = run * 256 + pixels[i], longer = known.get(key)
    if (longer !== undefined) {
      run = longer
      continue
    }
    emit(run)
    run = pixels[i]
    if (next === 4096) {
      emit(clear)
      known = new Map()
      next = end + 1
      size = depth + 1
    } else {
      if (next === 1 << size) size++
      known.set(key, next++)
    }
  }
  emit(run)
  emit(end)
  if (bits) out.push(held & 255)
  return Uint8Array.from(out)
}
