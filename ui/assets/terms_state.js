// @ts-check
// Where a term's card lies. Without a page.

/** @typedef {{ id: string, title: string, text: string, page: string, href: string }} Term */

const EDGE = 8, GAP = 6 // pixels: from the window's edge, and between term and card

/**
 * The card's corner: below its term where there is room, else above; never outside the window.
 * @param {{ left: number, top: number, bottom: number }} term
 * @param {{ width: number, height: number }} card
 * @param {{ width: number, height: number }} view
 */
export function cardPlace(term, card, view) {
  const left = Math.max(EDGE, Math.min(term.left, view.width - card.width - EDGE))
  const below = term.bottom + GAP
  const fits = below + card.height + EDGE <= view.height
  return { left, top: fits ? below : Math.max(EDGE, term.top - GAP - card.height) }
}
