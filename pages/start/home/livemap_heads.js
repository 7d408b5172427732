// @ts-check
// The heads of the open block of the living map: a small picture of each one's pattern.

import { fill, touched, weight } from "./livemap_state.js"
import { raster } from "../../../ui/assets/shared/canvas.js"
import { ramp } from "../../../ui/assets/shared/colours.js"
import { button, resize, within } from "../../../ui/assets/shared/dom.js"
import { sideOf } from "../../../ui/assets/shared/theme.js"

// The small patterns lie over the canvas, where the open block is.
export function headPlace(self) {
  const { g, heads, tall } = self
  const box = tall ? [4, g.from + 4, g.across - 8, 42] : [g.from + 8, 22, g.to - g.from - 16, 40]
  const room = Math.floor(box[2] / Math.max(1, self.p.heads)) - 4, size = Math.max(12, Math.min(34, room))
  Object.assign(heads.style, { left: `${box[0]}px`, top: `${box[1]}px`, width: `${box[2]}px` })
  heads.style.setProperty("--size", `${size}px`)
}

export function drawHeads(self) {
  const { p } = self, side = sideOf(self.root), colours = ramp(self.palette, side)
  self.heads.hidden = !p.patterns
  resize(self.buttons, p.patterns ? p.heads : 0, (head) => {
    const made = button("", "", () => {})
    // A finger cannot point without pressing: the card's own button leads on then.
    made.onclick = (event) => { if (!touched(event)) self.does.follow({ kind: "head", layer: self.focus }) }
    within(made, "canvas")
    made.tabIndex = -1 // the map is one stop of the Tab key: arrows lead here
    made.onpointerenter = made.onfocus = () => { choose(self, head); self.does.point({ kind: "head", layer: self.focus }) }
    made.onpointerleave = made.onblur = () => self.does.point(null)
    return self.heads.appendChild(made)
  })
  self.buttons.forEach((made, head) => {
    raster(made.firstChild, p.lanes, p.lanes, (k, q) => colours[Math.round(255 * weight(p, self.focus, head, q, k))])
    made.setAttribute("aria-pressed", String(head === self.head))
    made.setAttribute("aria-label", fill(self.panel.head, { head, block: self.focus }))
  })
}

/** Another head's arcs are drawn. */
export function choose(self, head) {
  if (head === self.head) return
  self.head = head
  self.does.keep("home_head", head)
  self.buttons.forEach((made, i) => made.setAttribute("aria-pressed", String(i === head)))
  self.does.refresh()
}
