// @ts-check
// What the server finds out after it has drawn the living map: the depths of a large model. It comes in the same run, in a
// message of its own, of which nothing is seen here: the map asks for it, or is told.

import { within } from "../../../ui/assets/shared/dom.js"
import { component } from "../../../ui/assets/shared/mount.js"

const REMEMBERED = 4 // texts

/** @type {Map<string, any>} by the picture's name */
const found = new Map()
/** @type {Set<(more: any) => void>} */
const listeners = new Set()

/** What is known of a picture beyond what came with it. @param {string} name */
export const further = (name) => found.get(name)

/** Calls `told` whenever there is more, until the signal comes. @param {(more: any) => void} told @param {AbortSignal} signal */
export function listen(told, signal) {
  listeners.add(told)
  signal.addEventListener("abort", () => listeners.delete(told))
}

/** @param {{ name: string }} more */
function keep(more) {
  found.delete(more.name)
  found.set(more.name, more)
  while (found.size > REMEMBERED) found.delete(found.keys().next().value ?? "")
  for (const told of listeners) told(more)
}

export default component({
  create: (place) => ({ root: within(place, "span") }),
  update: (_, data) => keep(data),
})
