// @ts-check
// What a stage decides without a page: how large, which key means what, and what stands in the address.

const DESIGNED = { width: 1180, height: 720 } // pixels that the pages are drawn for, without their sidebar
const LEAST = 0.7, MOST = 3 // of the height that a page asks for

/** Whether this tab is a stage, as load.js found its address. */
export const tab = { staged: typeof document !== "undefined" && "gfStaged" in document.documentElement.dataset }

/**
 * How much larger a page is drawn on a screen of this size: as much as both sides allow, never smaller.
 * @param {number} width
 * @param {number} height
 */
export const stageZoom = (width, height) => Math.max(1, Math.min(width / DESIGNED.width, height / DESIGNED.height))

/**
 * How much higher than asked for the figures are next, when they now are `grown` times so high, `stack` pixels together, and
 * `slack` pixels below them are free (or missing, below 0).
 * @param {number} grown
 * @param {number} slack
 * @param {number} stack
 */
export const nextGrown = (grown, slack, stack) => (stack > 0 ? Math.max(LEAST, Math.min(MOST, grown * (1 + slack / stack))) : grown)

/**
 * How much larger a thing of this size can be drawn on a screen.
 * @param {{ width: number, height: number }} own
 * @param {{ width: number, height: number }} screen
 */
export const fitting = (own, screen) => Math.max(0.2, Math.min(4, screen.width / own.width, screen.height / own.height))

/**
 * Puts stage mode into an address, or takes it out.
 * @param {URL} address
 * @param {boolean} on
 */
export function putStage(address, on) {
  if ((address.searchParams.get("stage") === "1") === on) return
  if (on) address.searchParams.set("stage", "1")
  else address.searchParams.delete("stage")
}

/**
 * What an address shows, for the room: without the stage, which is the projector's alone.
 * @param {string} written
 */
export function forTheRoom(written) {
  const address = new URL(written)
  putStage(address, false)
  return address.href
}

/**
 * What a key asks for; undefined for one that is somebody else's: with a modifier, or while something is written. Over a
 * question of a course only the stage is turned on and off: the figure below would tell the answer.
 * @param {{ key: string, ctrlKey?: boolean, metaKey?: boolean, altKey?: boolean, repeat?: boolean }} event
 * @param {boolean} writing
 * @param {boolean} [covered]
 * @returns {"stage" | "full" | "freeze" | "leave" | undefined}
 */
export function asked(event, writing, covered = false) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return undefined
  if (event.key === "Escape") return covered ? undefined : "leave"
  if (writing) return undefined
  const what = { p: "stage", f: "full", z: "freeze" }[event.key.toLowerCase()]
  return covered && what !== "stage" ? undefined : /** @type {any} */ (what)
}

/**
 * The bars of an answered question: counts, and their shares of the answers given.
 * @param {number[]} counts
 */
export function bars(counts) {
  const all = counts.reduce((sum, n) => sum + n, 0)
  return counts.map((count) => ({ count, share: all ? count / all : 0 }))
}

/**
 * The index of the answer that is marked as right: once no more answers come, where the question was handed over with it.
 * @param {{ text: string, answers: string[], open: boolean }} room
 * @param {{ text: string, answers: string[], right?: number } | null} given
 * @returns {number} -1 for none
 */
export function rightAnswer(room, given) {
  const same = given?.right !== undefined && given.text === room.text && given.answers[given.right] === room.answers[given.right]
  return same && !room.open ? /** @type {number} */ (given.right) : -1
}

/**
 * What a second vote has shifted, in a line: the share of the right answer, where there is one, else of the answer whose share has
 * changed most. "" for a first vote, and while answers may come.
 * @param {{ answers: string[], before: number[], counts: number[], open: boolean }} room
 * @param {number} right -1 for none
 */
export function shifted({ answers, before, counts, open }, right) {
  if (!before.length || open) return ""
  const was = bars(before), is = bars(counts), sum = (/** @type {number[]} */ all) => all.reduce((total, n) => total + n, 0)
  if (!sum(before) || !sum(counts)) return "One of the two votes has no answers, so there is nothing to compare."
  const by = is.map(({ share }, i) => Math.abs(share - was[i].share)), at = right >= 0 ? right : by.indexOf(Math.max(...by))
  const percent = (/** @type {number} */ share) => `${Math.round(100 * share)}%`
  const what = right >= 0 ? "Right" : by[at] ? `Largest shift, “${answers[at]}”` : `No shift, “${answers[at]}”`
  return `${what}: ${percent(was[at].share)} before, ${percent(is[at].share)} after (${sum(before)} and ${sum(counts)} answers).`
}
