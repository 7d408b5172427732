// @ts-check
// How far this browser has come in a course: a slim bar, the count, and on from the first scene that was not seen. Nothing where
// none was.

import { button, within, write } from "../../../ui/assets/shared/dom.js"
import { component } from "../../../ui/assets/shared/mount.js"
import { progress, watch } from "../../../ui/assets/shared/progress_store.js"
import { howFar } from "../../../ui/assets/shared/progress_state.js"

function create(place, _, signal) {
  const root = within(place, "div", "gf-mark"), count = within(root, "div", "gf-mark-count"), said = within(count, "span", "gf-mark-said")
  const bar = within(within(count, "div", "gf-mark-bar"), "div")
  const self = { root, bar, said, on: button("", "", () => self.trigger("scene", howFar(progress(), self.data.id, self.data.count).next)), data: null, trigger: (/** @type {string} */ _name, /** @type {any} */ _value) => {} }
  root.append(self.on)
  watch(() => draw(self), signal)
  return self
}

function update(self, data) {
  self.data = data
  draw(self)
}

function draw(self) {
  if (!self.data) return
  const { id, count } = self.data, { seen, next } = howFar(progress(), id, count)
  self.root.hidden = !seen
  self.bar.style.width = `${(100 * seen) / count}%`
  write(self.said, seen === count ? "all scenes seen" : `${seen} of ${count} seen`)
  self.on.hidden = next < 1
  write(self.on, `Go on at ${next + 1}`)
  self.on.setAttribute("aria-label", `Go on at ${next + 1}, the first scene after those that you have seen`)
}

export default component({ create, update })
