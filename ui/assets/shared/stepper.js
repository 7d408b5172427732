// @ts-check
// A player over steps that are all here already: a button that plays, a slider, and the step in the page's address.

import { button, element, rangeInput } from "./dom.js"
import { frames, inLink, keepInLink, keptInLink, playButton } from "./play.js"

/**
 * What a player is made of. `unit` is what a step is called, `label` names the slider, `play` the button; `arrows` puts two
 * buttons for one step beside it. A player that `loops` begins anew at the end, others stop there. `moved` is called when
 * another step is to be drawn; `dragged` is true while the slider is.
 * @typedef {{ unit: string, label: string, play: string, ms: number, arrows?: boolean, loops?: boolean, moved: (dragged: boolean) => void }} Parts
 */

/** Makes the line of a player. `at` is its step, null before the server has sent any. @param {Parts} parts */
export function createStepper({ unit, label, play, ms, arrows = true, loops = false, moved }) {
  let player = /** @type {ReturnType<typeof frames> | null} */ (null), name = "", sent = 0, isLed = false
  const bar = element("div", "gf-steps"), slider = rangeInput(label), where = element("output")
  const toggle = button("▶", play, () => (player ? pause() : start()))
  const by = (/** @type {number} */ step) => () => { pause(); go(self.at + step) }
  const [back, on] = [button("◀", `One ${unit} back`, by(-1)), button("▶▏", `One ${unit} forward`, by(1))]
  const link = keepInLink(led)
  const self = { bar, at: /** @type {any} */ (null), last: 0, start, pause, paint, update, stop: () => { pause(); link.stop() } }

  slider.oninput = () => { pause(); go(Number(slider.value), true) }
  for (const node of [toggle, back, on, slider]) node.dataset.unsaved = ""
  bar.append(toggle, ...(arrows ? [back, on] : []), slider, where)

  function start() {
    pause()
    if (!loops && self.at >= self.last) go(0)
    player = frames(() => 1000 / ms, () => {
      if (loops || self.at < self.last) go(self.at < self.last ? self.at + 1 : 0)
      else pause()
    })
    playButton(toggle, true)
  }

  function pause() {
    player?.stop()
    player = null
    playButton(toggle, false, play)
  }

  /** Shows the step that the address names, after a link or Back. What the server draws next is that address's, too. */
  function led() {
    if (self.at === null) return
    pause()
    isLed = true
    self.at = Math.min(inLink(name, sent), self.last)
    moved(false)
  }

  function go(/** @type {number} */ step, dragged = false) {
    isLed = false
    self.at = Math.min(Math.max(step, 0), self.last)
    moved(dragged)
    link.keep(name, self.at)
  }

  /**
   * Takes what the server sent: the step at first, its name in the address, and the last step there is. A person who watched
   * the end of one text sees the end of the next.
   * @param {{ name: string, step: number, last: number }} data
   */
  function update(data) {
    const ended = !loops && self.at >= self.last
    const step = self.at === null ? keptInLink(data.name, data.step) : isLed ? data.step : ended ? data.last : self.at
    name = data.name
    sent = data.step
    isLed = false
    self.last = data.last
    self.at = Math.min(step, data.last)
  }

  /** Draws the line, with these words at its end. @param {string} words */
  function paint(words) {
    const { at, last } = self
    Object.assign(slider, { max: String(last), value: String(at) })
    slider.style.setProperty("--gone", `${(100 * at) / Math.max(last, 1)}%`)
    slider.setAttribute("aria-valuetext", `${unit} ${at} of ${last}`)
    where.textContent = words
    back.disabled = at <= 0
    on.disabled = at >= last
  }

  return self
}
