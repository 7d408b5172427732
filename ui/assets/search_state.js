// @ts-check
// What search decides without a page: which key opens it, where an arrow leads, and which view is the one on the screen.

import { target } from "./shared/keys.js"
import { writes } from "./tour_state.js"

/** @typedef {{ kind: string, title: string, detail: string, address: string, first?: string }} Row */

/**
 * Whether a key opens the search: / where nobody writes, and no dialog is open. On some keyboards it is a shifted key.
 * @param {KeyboardEvent} event
 */
export function opens(event) {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return false
  const from = event.composedPath()[0]
  if (from instanceof HTMLElement && (writes(from) || from.isContentEditable)) return false
  return !document.querySelector("dialog:modal, [role=dialog]:not([popover], [hidden])")
}

/**
 * The row to which an arrow leads, round the ends; undefined for another key.
 * @param {string} key
 * @param {number} at
 * @param {number} count
 */
export function next(key, at, count) {
  const to = key.startsWith("Arrow") && count ? target(key, at, count - 1, "y") : undefined
  return to === undefined ? undefined : (to + count) % count
}

/**
 * Whether a row is the view on the screen: an address that names no view shows its page's first.
 * @param {Row} row
 * @param {URL} root
 * @param {string} shown
 */
export function isHere(row, root, shown) {
  const there = new URL(row.address || ".", root), here = new URL(shown)
  return there.pathname === here.pathname && [...there.searchParams].every(([name, value]) => (here.searchParams.get(name) ?? row.first) === value)
}
