// @ts-check
// What a saved film does when it is opened. Its text is put into the file (film_page.js), so it stands by itself.

/**
 * @typedef {object} Frame
 * @property {number} step
 * @property {string} said where in the training this is
 * @property {string} answer
 * @property {{ box: number[], figure: number, data?: any[], layout?: number, picture?: string }[]} shots `box`: left, top, width, height; `figure`: which of them
 *
 * @typedef {object} Film
 * @property {string} title
 * @property {string} about which training, and what it read
 * @property {number} width
 * @property {number} height
 * @property {any[]} layouts
 * @property {Frame[]} frames
 * @property {number} rest milliseconds that a frame stands
 */

export function player() {
  /** @type {Film} */
  const film = JSON.parse(document.getElementById("film").textContent)
  const find = (name) => /** @type {any} */ (document.getElementById(name))
  const stage = find("stage"), slider = find("slider"), button = find("play"), last = film.frames.length - 1
  const slots = new Map()
  let at = 0, timer = 0
  const withNames = (trace) => {
    const { rows, columns, between } = trace.meta ?? {}
    return rows && columns ? { ...trace, hovertext: rows.map((row) => columns.map((column) => row + between + column)) } : trace
  }
  const slot = (index, kind) => {
    const held = slots.get(index)
    if (held?.kind === kind) return held.node
    held?.node.remove()
    const node = stage.appendChild(document.createElement(kind))
    slots.set(index, { kind, node })
    return node
  }
  const show = (wanted) => {
    at = Math.max(0, Math.min(last, wanted))
    const { said, answer, shots } = film.frames[at]
    slider.value = String(at)
    slider.setAttribute("aria-valuetext", said)
    find("said").textContent = said
    find("answer").textContent = answer
    for (const [index, held] of slots) held.node.hidden = !shots.some((one) => one.figure === index)
    for (const { box, figure, data, layout, picture } of shots) {
      const node = slot(figure, data ? "div" : "img")
      node.style.cssText = `position: absolute; left: ${box[0]}px; top: ${box[1]}px; width: ${box[2]}px; height: ${box[3]}px`
      if (picture) Object.assign(node, { src: picture, alt: "" })
      else /** @type {any} */ (window).Plotly.react(node, data.map(withNames), structuredClone(film.layouts[layout]), { displayModeBar: false, responsive: false })
    }
  }
  const stop = () => {
    clearInterval(timer)
    timer = 0
    button.textContent = "▶"
    button.setAttribute("aria-label", "Play")
  }
  const play = () => {
    if (at === last) show(0)
    button.textContent = "❚❚"
    button.setAttribute("aria-label", "Pause")
    timer = window.setInterval(() => (at < last ? show(at + 1) : stop()), film.rest)
  }
  // All of it is seen at once, where that leaves it large enough.
  const fit = () => {
    const { clientWidth, clientHeight } = document.documentElement
    const around = find("room").offsetTop + find("answer").offsetHeight + 40
    const scale = Math.min(1, (clientWidth - 32) / film.width, Math.max(0.6, (clientHeight - around) / film.height))
    stage.style.transform = `scale(${scale})`
    find("room").style.height = `${film.height * scale}px`
  }
  slider.max = String(last)
  slider.oninput = () => { stop(); show(Number(slider.value)) }
  button.onclick = () => (timer ? stop() : play())
  window.onresize = fit
  show(0)
  fit()
  if (!matchMedia("(prefers-reduced-motion: reduce)").matches) play()
}
