// @ts-check
// The way to a room: a code for phones, its address, and a note about it.

import { within } from "../../../ui/assets/shared/dom.js"
import { component } from "../../../ui/assets/shared/mount.js"
import { squares } from "../../../ui/assets/stage_room.js"

const create = (place) => ({ root: within(place, "div", "gf-way") })

function update(self, /** @type {{ code: { size: number, path: string }, address: string, note: string, label: string }} */ { code, address, note, label }) {
  self.root.replaceChildren(...(code.path ? [squares(code, label)] : []))
  within(self.root, "p", "gf-way-address", address)
  if (note) within(self.root, "p", "gf-way-note", note)
}

export default component({ create, update })
