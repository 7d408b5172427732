// @ts-check
// Arithmetic of colours, without a page.

/** @typedef {Record<string, [string, string]>} Palette the colours by name: [on a light page, on a dark one] */

const LEVELS = 6 // of a scale: seq0 ... seq6, div0 ... div6
const PAPER = "#f4f7fb" // text on a dark shade
const INKS = ["#18202c", "#10151d"] // text on a light shade, by side

/**
 * "#rrggbb" or "rgb(r, g, b ...)" -> [r, g, b], each 0 to 255.
 * @param {string} colour
 * @returns {number[]}
 */
export function channels(colour) {
  if (colour.startsWith("#")) return [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16))
  return (colour.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number)
}

/**
 * How light a colour is, 0 to 1: the weights of Rec. 709 over its values as they stand.
 * @param {number[]} rgb
 */
export function luminance([r, g, b]) {
  return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255
}

/**
 * The step of the sequential scale for a value; outside [0, 1] counts as its end.
 * @param {number} value
 */
export function level(value) {
  return Number.isFinite(value) ? Math.min(LEVELS, Math.max(0, Math.round(value * LEVELS))) : 0
}

/**
 * A token's background for a value in [0, 1], and the colour in which its text can be read. The scale runs from light
 * to dark on a light page, and from dark to light on a dark one.
 * @param {Palette} palette
 * @param {number} value
 * @param {number} side 0 light, 1 dark
 */
export function shade(palette, value, side) {
  const step = level(value), light = side ? step >= 4 : step < 4
  return { background: palette[`seq${step}`][side], color: light ? INKS[side] : PAPER }
}

/**
 * `count` colours, each [r, g, b], between the seven of a scale: the sequential one, or "div", which is for signed values.
 * @param {Palette} palette
 * @param {number} side
 * @param {number} [count]
 * @param {"seq" | "div"} [scale]
 */
export function ramp(palette, side, count = 256, scale = "seq") {
  const stops = Array.from({ length: LEVELS + 1 }, (_, i) => channels(palette[`${scale}${i}`][side]))
  return Array.from({ length: count }, (_, v) => {
    const place = (v / (count - 1)) * LEVELS, low = Math.min(LEVELS - 1, Math.floor(place)), part = place - low
    return stops[low].map((c, i) => Math.round(c + (stops[low + 1][i] - c) * part))
  })
}
