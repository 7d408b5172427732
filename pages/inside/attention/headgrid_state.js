// @ts-check
// The arithmetic of the grid of heads, without a page: pictures as they are sent, and where an arrow key leads.

/**
 * Pictures of which only the lower triangle was sent, made square: nothing lies above the diagonal.
 * @param {Uint8Array} packed (picture, row, column up to the row)
 * @param {number} size rows of a picture
 */
export function squared(packed, size) {
  const pictures = packed.length / ((size * (size + 1)) / 2), found = new Uint8Array(pictures * size * size)
  let at = 0
  for (let row = 0; row < pictures * size; row++) {
    const count = (row % size) + 1
    found.set(packed.subarray(at, at + count), row * size)
    at += count
  }
  return found
}

/** @typedef {{ left: number, top: number, width: number }} Box */

/**
 * The place among `boxes` that an arrow key leads to from `index`: the next to the side in its row, or the nearest in the row
 * above or below. -1 at the edge, undefined for another key.
 * @param {Box[]} boxes
 * @param {number} index
 * @param {string} key
 */
export function neighbour(boxes, index, key) {
  const side = { ArrowRight: 1, ArrowLeft: -1 }[key], down = { ArrowDown: 1, ArrowUp: -1 }[key], own = boxes[index]
  const half = own.width / 2 // boxes of one row begin at the same height, but for a fraction of a pixel
  const same = (a, b) => Math.abs(a - b) < half
  const nearest = (places, distance) => places.reduce((best, i) => (best < 0 || distance(boxes[i]) < distance(boxes[best]) ? i : best), -1)
  const every = boxes.map((_, i) => i)
  if (side) return nearest(every.filter((i) => same(boxes[i].top, own.top) && side * (boxes[i].left - own.left) > half), (box) => Math.abs(box.left - own.left))
  if (!down) return undefined
  const beyond = every.filter((i) => down * (boxes[i].top - own.top) > half)
  const first = nearest(beyond, (box) => Math.abs(box.top - own.top))
  return first < 0 ? -1 : nearest(beyond.filter((i) => same(boxes[i].top, boxes[first].top)), (box) => Math.abs(box.left - own.left))
}

/** @typedef {{ begin: number, end: number, text: string }} Label the first and the last token that it stands for */

const BLANKS = /^[␣⏎⇥]+|[␣⏎⇥]+$/g

/**
 * The words that tokens make; a word ends at a blank.
 * @param {string[]} tokens
 * @returns {Label[]}
 */
export function words(tokens) {
  /** @type {Label[]} */
  const found = []
  let inside = false
  tokens.forEach((token, at) => {
    const text = token.replace(BLANKS, "")
    if (text && inside && !/^[␣⏎⇥]/.test(token)) Object.assign(found.at(-1), { end: at, text: found.at(-1).text + text })
    else if (text) found.push({ begin: at, end: at, text })
    inside = text !== "" && !/[␣⏎⇥]$/.test(token)
  })
  return found
}

/**
 * Where a label stands, in tokens.
 * @param {Label} label
 */
export function middle({ begin, end }) {
  return (begin + end) / 2
}

/**
 * What is written along a text: every token where there is room, else its words, else nothing. A text with every second letter left
 * out would be nonsense.
 * @param {string[]} tokens
 * @param {number} cell pixels of a token
 * @param {number} line pixels that a label needs
 * @returns {Label[]}
 */
export function labels(tokens, cell, line) {
  if (cell >= line) return tokens.map((text, at) => ({ begin: at, end: at, text }))
  const all = words(tokens), kept = []
  for (const one of all) if (!kept.length || (middle(one) - middle(kept.at(-1))) * cell >= line) kept.push(one)
  return kept.length >= 0.75 * all.length ? kept : []
}

/**
 * The key that gets most of a row's weight; of equal ones the later.
 * @param {(key: number) => number} weight
 * @param {number} count
 */
export function strongest(weight, count) {
  let best = 0
  for (let key = 1; key < count; key++) if (weight(key) >= weight(best)) best = key
  return best
}

/**
 * [query, key] of the later half where a token looks most decidedly at another; of equal ones the earlier. Not at the first token:
 * there heads rest.
 * @param {(query: number, key: number) => number} weight
 * @param {number} count
 */
export function telling(weight, count) {
  let best = [count - 1, strongest((key) => weight(count - 1, key), count)], most = -1
  for (let query = Math.floor(count / 2); query < count; query++) {
    const key = strongest((k) => (k === query || !k ? -1 : weight(query, k)), count)
    if (key !== query && key && weight(query, key) > most + 1e-9) [best, most] = [[query, key], weight(query, key)]
  }
  return best
}
