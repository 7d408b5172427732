// @ts-check
// The living map without a mouse: one stop of the Tab key, arrows within, Enter leads on. Along a lane from place to place,
// across from lane to lane; above the first lane are the heads' pictures.

import { boxOf, same, stations } from "./livemap_state.js"

const ABOVE = -1 // the row over the lanes

/** What stands above the lanes: tokens that are not drawn, the open block, its heads. */
function above(self) {
  const { p } = self, layer = self.focus
  return [...(p.earlier ? [{ kind: "earlier" }] : []), { kind: "block", layer }, ...(p.patterns ? Array.from({ length: p.heads }, (_, head) => ({ kind: "head", layer, head })) : [])]
}

const row = (self, lane) => (lane === ABOVE ? above(self) : stations(self.p, self.goal, lane).map(([spot]) => spot))

const laneOf = (spot) => (spot.lane >= 0 ? spot.lane : ABOVE)

const like = (a, b) => same(a, b) && a.layer === b.layer && a.head === b.head

/** Where the keyboard stands, else where it begins: the head that is chosen, at the lane that is chosen. */
function place(self) {
  const lane = self.spot ? laneOf(self.spot) : self.lane, there = row(self, Math.min(lane, self.p.lanes - 1))
  const known = self.spot && (there.find((one) => like(one, self.spot)) ?? there.find((one) => same(one, self.spot) && one.head === self.spot.head))
  return known ?? there.find(({ kind }) => kind === "head") ?? there[0]
}

/** Points at where the keyboard stands. */
export function standAt(self, spot = place(self)) {
  self.spot = spot
  self.keyed = true
  if (spot.head !== undefined) self.does.choose(spot.head)
  self.does.point(spot)
}

/** The keyboard has gone elsewhere. */
export function leave(self) {
  self.keyed = false
  self.does.point(null)
}

/** A ring around a head's picture: the others are drawn on the canvas. */
export function ring(self) {
  const head = self.keyed && self.hover && !boxOf(self.p, self.g, self.hover) ? self.hover.head : undefined
  self.buttons.forEach((made, i) => made.classList.toggle("gf-ring", i === head))
}

/** @param {any} self @param {KeyboardEvent} event */
export function keys(self, event) {
  const along = self.tall ? { ArrowDown: 1, ArrowUp: -1 } : { ArrowRight: 1, ArrowLeft: -1 }, across = self.tall ? { ArrowRight: 1, ArrowLeft: -1 } : { ArrowDown: 1, ArrowUp: -1 }
  if (event.ctrlKey || event.metaKey || event.altKey) return
  const { key } = event, now = place(self), lane = laneOf(now), there = row(self, lane), at = there.findIndex((one) => like(one, now))
  if (key in along) standAt(self, there[Math.max(0, Math.min(there.length - 1, at + along[key]))])
  else if (key in across) standAt(self, over(self, now, lane, Math.max(ABOVE, Math.min(self.p.lanes - 1, lane + across[key]))))
  else if (key === "Home") standAt(self, there[0])
  else if (key === "End") standAt(self, there.at(-1))
  else if (key === "PageDown" || key === "PageUp") {
    self.does.open(Math.max(0, Math.min(self.p.layers - 1, self.focus + (key === "PageDown" ? 1 : -1))))
    standAt(self, place(self))
  } else if (key === "Enter" || key === " ") {
    self.spot = now
    self.does.act(now)
    if (self.canvas.isConnected) standAt(self)
  } else if (key === "Escape") leave(self)
  else return
  event.preventDefault()
}

/** The same place of another lane; from the lanes to what is above them, and back. */
function over(self, now, from, to) {
  const there = row(self, to)
  if (to === from) return now
  if (to === ABOVE) return there.find((one) => one.head === self.head && now.kind === "head") ?? there[0]
  if (from === ABOVE) return there.find(({ kind }) => kind === (now.kind === "earlier" ? "token" : "head")) ?? there[0]
  return there.find((one) => like(one, now)) ?? there[0]
}
