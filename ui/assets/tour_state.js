// @ts-check
// Where a key leads in a course, without the page.

/**
 * The index of the scene that a key leads to; undefined for a key that leads nowhere. Page Up and Page Down, which a
 * presenter's clicker sends, count unless somebody writes; arrows only where nothing else has use for them.
 * @param {string} key
 * @param {number} at
 * @param {number} count
 * @param {{ writes: boolean, busy: boolean }} where what has the focus: something written in, something that arrows move
 * @returns {number | undefined}
 */
export function leads(key, at, count, { writes, busy }) {
  const on = key === "PageDown" || (key === "ArrowRight" && !busy)
  const back = key === "PageUp" || (key === "ArrowLeft" && !busy)
  if (writes || !(on || back)) return undefined
  const found = at + (on ? 1 : -1)
  return found >= 0 && found < count ? found : undefined
}
