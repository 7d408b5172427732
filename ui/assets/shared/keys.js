// @ts-check
// Where a key leads, and whether a pointer has really moved.

/**
 * The index that a key leads to from `index`, not clamped; undefined for a key that leads nowhere. `along` says which
 * arrows count.
 * @param {string} key
 * @param {number} index
 * @param {number} last
 * @param {"x" | "y" | "both"} [along]
 * @returns {number | undefined}
 */
export function target(key, index, last, along = "both") {
  if (key === "Home") return 0
  if (key === "End") return last
  if (along !== "y" && (key === "ArrowRight" || key === "ArrowLeft")) return index + (key === "ArrowRight" ? 1 : -1)
  if (along !== "x" && (key === "ArrowDown" || key === "ArrowUp")) return index + (key === "ArrowDown" ? 1 : -1)
  return undefined
}

/**
 * Only a pointer that moves chooses: one at rest, with the page scrolling or growing below it, must not undo what a key chose.
 * @param {{ pointer?: string | null }} self
 * @param {{ screenX: number, screenY: number }} event
 */
export function pointerMoved(self, event) {
  const where = `${event.screenX} ${event.screenY}`, moved = where !== self.pointer
  self.pointer = where
  return moved
}
