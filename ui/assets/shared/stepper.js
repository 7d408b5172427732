// @ts-check
// Players over steps: the line of buttons and slider that all of them have; and one over steps that are all here already, which
// keeps its step in the page's address.

import { button, element, rangeInput, within } from "./dom.js"
import { frames, inLink, keepInLink, keptInLink, playButton } from "./play.js"

/** @type {Record<string, [string, (unit: string) => string]>} sign and name of the button for each thing that a player does */
const BUTTONS = {
  first: ["⇤", (unit) => `To the first ${unit}`], back: ["◀", (unit) => `One ${unit} back`], play: ["▶", () => "Play"],
  next: ["▶▏", (unit) => `One ${unit} forward`], last: ["⇥", (unit) => `To the last ${unit}`],
}

/**
 * The line of a player. `does` has a function for each of its buttons, as BUTTONS names them; `slide` is called with the
 * slider's step. `unit` is what a step is called, `label` names the slider, or its `track` does. With `speeds`, steps per
 * second (0: as fast as frames come), there is a choice among them.
 * @param {{ unit: string, label?: string, track?: { root: HTMLElement, slider: HTMLInputElement }, speeds?: number[] }} parts
 * @param {Record<string, () => void>} does
 * @param {(step: number) => void} slide
 */
export function createBar({ unit, label = "", track, speeds = [] }, does, slide) {
  const bar = element("div", "gf-steps", "", { role: "group", "aria-label": "Player" }), buttons = /** @type {Record<string, HTMLButtonElement>} */ ({})
  for (const [name, press] of Object.entries(does)) {
    const [sign, called] = BUTTONS[name]
    buttons[name] = bar.appendChild(button(sign, called(unit), press))
    buttons[name].title = called(unit)
    buttons[name].dataset.do = name
  }
  const slider = track?.slider ?? rangeInput(label)
  bar.append(track?.root ?? slider)
  const where = within(bar, "output")
  const choice = element("label", "gf-steps-speed", "Speed"), speed = within(choice, "select")
  for (const rate of speeds) within(speed, "option", "", rate ? `${rate}/s` : "no delay", { value: rate })
  if (speeds.length) bar.append(choice)
  slider.oninput = () => slide(Number(slider.value))
  slider.onkeydown = (event) => { if (event.key === " ") { event.preventDefault(); does.play() } }
  for (const node of [...Object.values(buttons), slider, choice]) node.dataset.unsaved = ""
  return {
    bar, buttons, slider, speed,
    /** Stands at a step of `last`, with these words at the end of the line. @param {number} at @param {number} last @param {string} words */
    stand(at, last, words) {
      Object.assign(slider, { max: String(last), value: String(at) })
      slider.style.setProperty("--gone", `${(100 * at) / Math.max(last, 1)}%`)
      slider.setAttribute("aria-valuetext", `${unit} ${at} of ${last}`)
      where.textContent = words
    },
  }
}

/**
 * What a player is made of, beside its line: `play` names its button, `ms` is how long a step stands where there is no choice
 * of speeds. `ends` are two buttons more, to the first step and the last. A player that `loops` begins anew at the end,
 * others stop there. `moved` is called when another step is to be drawn, `dragged` being true while the slider is; `rested`
 * when it has stopped playing.
 * @typedef {Parameters<typeof createBar>[0] & { play: string, ms?: number, ends?: boolean, loops?: boolean, moved: (dragged: boolean) => void, rested?: () => void }} Parts
 */

/** Makes a player, until the signal comes. `at` is its step, null before the server has sent any. @param {Parts} parts @param {AbortSignal} signal */
export function createStepper({ play, ms, ends = false, loops = false, moved, rested = () => {}, ...parts }, signal) {
  let player = /** @type {ReturnType<typeof frames> | null} */ (null), name = "", sent = 0, isLed = false
  const to = (/** @type {number} */ step, dragged = false) => { pause(); go(step, dragged) }
  const inner = { back: () => to(self.at - 1), play: () => (player ? pause() : start()), next: () => to(self.at + 1) }
  const all = { first: () => to(0), ...inner, last: () => to(self.last) }
  const { bar, buttons, slider, speed, stand } = createBar(parts, ends ? all : inner, (step) => to(step, true))
  const keep = keepInLink(signal, led)
  const self = { bar, slider, speed, at: /** @type {any} */ (null), last: 0, start, pause, to, paint, update, playing: () => player !== null }
  signal.addEventListener("abort", pause)
  playButton(buttons.play, false, play)

  function start() {
    pause()
    if (!loops && self.at >= self.last) go(0)
    player = frames(() => (ms ? 1000 / ms : Number(speed.value)), (steps) => {
      if (loops || self.at < self.last) go(loops ? (self.at + steps) % (self.last + 1) : self.at + steps)
      else pause()
    })
    playButton(buttons.play, true)
  }

  function pause() {
    if (!player) return
    player.stop()
    player = null
    playButton(buttons.play, false, play)
    rested()
  }

  /** Shows the step that the address names, after a link or Back, until the server has drawn that or the hand moves on. */
  function led() {
    if (!name) return
    pause()
    isLed = true
    self.at = Math.min(inLink(name, sent), self.last)
    moved(false)
  }

  function go(/** @type {number} */ step, dragged = false) {
    isLed = false
    self.at = Math.min(Math.max(step, 0), self.last)
    moved(dragged)
    if (name) keep(name, self.at)
  }

  /**
   * Takes what the server sent: the step at first, its name in the address (none where the server itself keeps it there), and
   * the last step there is. A person who watched the end of one text sees the end of the next.
   * @param {{ name?: string, step: number, last: number }} data
   */
  function update(data) {
    const ended = !loops && self.at >= self.last
    const step = self.at === null ? keptInLink(data.name, data.step) : isLed ? inLink(name, data.step) : ended ? data.last : self.at
    name = data.name ?? ""
    sent = data.step
    isLed &&= inLink(name, NaN) !== data.step
    self.last = data.last
    self.at = Math.min(step, data.last)
  }

  /** Draws the line, with these words at its end. @param {string} words */
  function paint(words) {
    stand(self.at, self.last, words)
    for (const [does, end] of Object.entries({ first: 0, back: 0, next: self.last, last: self.last })) if (does in buttons) buttons[does].disabled = self.at === end
  }

  return self
}
