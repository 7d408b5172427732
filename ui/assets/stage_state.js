// @ts-check
// What a stage decides without a page: how large, which key means what, and what stands in the address.

const DESIGNED = { width: 1180, height: 720 } // pixels that the pages are drawn for, without their sidebar
const LEAST = 0.7, MOST = 3 // of the height that a page asks for

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
 * An address with stage mode in it, or without.
 * @param {string} address
 * @param {boolean} on
 */
export function withStage(address, on) {
  const made = new URL(address)
  if ((made.searchParams.get("stage") === "1") === on) return address
  if (on) made.searchParams.set("stage", "1")
  else made.searchParams.delete("stage")
  return made.href
}

/**
 * What an address shows, for the room: without the stage, which is the projector's alone.
 * @param {string} address
 */
export const forTheRoom = (address) => withStage(address, false)

/**
 * Where a view ends and another begins: the path, and the place in a course.
 * @param {string} address
 */
export function sceneOf(address) {
  const { pathname, searchParams } = new URL(address)
  return [pathname, searchParams.get("course"), searchParams.get("scene")].join(" ")
}

/**
 * What a key asks for; undefined for one that is somebody else's: with a modifier, or while something is written.
 * @param {{ key: string, ctrlKey?: boolean, metaKey?: boolean, altKey?: boolean, repeat?: boolean }} event
 * @param {boolean} writing
 * @returns {"stage" | "full" | "freeze" | "leave" | undefined}
 */
export function asked(event, writing) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return undefined
  if (event.key === "Escape") return "leave"
  if (writing) return undefined
  return /** @type {any} */ ({ p: "stage", P: "stage", f: "full", F: "full", z: "freeze", Z: "freeze" })[event.key]
}

/**
 * The bars of an answered question: share of the answers given, and of the longest bar.
 * @param {number[]} counts
 */
export function bars(counts) {
  const all = counts.reduce((sum, n) => sum + n, 0), most = Math.max(...counts, 0)
  return counts.map((n) => ({ count: n, share: all ? n / all : 0, long: most ? n / most : 0 }))
}
