// @ts-check
// Where the scrubber stands among the snapshots: arithmetic alone.

const LETTER = 6 // pixels of a letter of a mark's name, of 12 pixels
export const NEWEST = -1 // follow the newest, as ui/players/scrubber.py has it

/**
 * @typedef {object} Snapshots
 * @property {number[]} steps ascending, one at least
 * @property {(number | null)[]} losses training loss at each of them, nats per token
 * @property {string} run
 */

/**
 * The index of a step: of the first snapshot at or after it; of the last where there is none.
 * @param {number[]} steps
 * @param {number} step
 */
export function place(steps, step) {
  const found = steps.findIndex((s) => s >= step)
  return step === NEWEST || found < 0 ? steps.length - 1 : found
}

/**
 * What to ask the server for: the step, or NEWEST at the right end.
 * @param {number[]} steps
 * @param {number} index
 */
export const wanted = (steps, index) => (index === steps.length - 1 ? NEWEST : steps[index])

/**
 * The index after a message. While an answer is awaited the slider stays where the hand is, at its step or at the end;
 * else it shows what the server shows.
 * @param {{ steps: number[], index: number }} before
 * @param {{ steps: number[], shown: number }} now
 * @param {boolean} moving
 */
export function after(before, now, moving) {
  return place(now.steps, moving ? wanted(before.steps, before.index) : now.shown)
}

/**
 * What happened at a step.
 * @typedef {{ step: number, short: string, words: string }} Mark
 */

/**
 * @param {Snapshots & { marks?: Mark[] }} data
 * @param {number} index
 */
export function words({ steps, losses, marks = [] }, index) {
  const loss = losses[index], mark = marks.find(({ step }) => step === steps[index])
  const then = mark ? ` · ${mark.words}` : loss === null ? "" : ` · training loss ${loss.toFixed(2)}` // one line has room for one
  return `step ${steps[index].toLocaleString("en")}${index === steps.length - 1 ? " (newest)" : ""}${then}`
}

/**
 * The marks that have a place among the snapshots: how far along the slider each stands, in percent, and its name, in full
 * where there is room for that before the next, else short, else none.
 * @param {number[]} steps
 * @param {Mark[]} marks
 * @param {number} wide pixels that the slider has
 */
export function marked(steps, marks, wide) {
  const last = Math.max(steps.length - 1, 1)
  const found = marks.filter(({ step }) => steps.includes(step)).map((mark) => ({ ...mark, at: (100 * steps.indexOf(mark.step)) / last }))
  const room = (i) => (((i + 1 < found.length ? found[i + 1].at : 100) - found[i].at) * wide) / 100 // pixels to its right
  const name = ({ short, words: full }, i) => [full, short].find((each) => LETTER * (1 + each.length) <= room(i)) ?? ""
  return found.map((mark, i) => ({ ...mark, name: name(mark, i) }))
}

/**
 * The loss as points of a picture 1000 wide and 100 high, [x, y] each; snapshots without a loss are left out.
 * @param {(number | null)[]} losses
 * @returns {number[][]}
 */
export function points(losses) {
  const last = losses.length - 1
  const known = /** @type {number[]} */ (losses.filter((v) => v !== null))
  const low = Math.min(...known), span = Math.max(Math.max(...known) - low, 1e-9)
  return losses.flatMap((v, i) => (v === null ? [] : [[(1000 * i) / Math.max(last, 1), 92 - (84 * (v - low)) / span]]))
}
