// @ts-check
// A pointer that rests points at nothing: once a key leads on, what comes to lie under it is not lit, opens no panel and shows no
// buttons, until it moves. A browser says of a page that moved below it that the pointer moved.

const RESTS = "gf-resting" // on the root element
const ENTERS = /** @type {const} */ (["pointermove", "pointerover", "pointerenter", "mousemove", "mouseover", "mouseenter"])
const LEAVES = ["pointerout", "pointerleave", "mouseout", "mouseleave"]
const { classList } = document.documentElement

let x = -1, y = -1

/** Follows the pointer. @param {AbortSignal} signal */
export function resting(signal) {
  const entered = (/** @type {MouseEvent} */ event) => {
    const at = [Math.floor(event.clientX), Math.floor(event.clientY)], rests = at[0] === x && at[1] === y // whole, as those of a mouse event are
    ;[x, y] = at
    if (!rests) leave()
    else if (classList.contains(RESTS)) event.stopImmediatePropagation()
  }
  for (const name of ENTERS) window.addEventListener(name, entered, { signal, capture: true })
  window.addEventListener("pointerdown", leave, { signal, capture: true })
  signal.addEventListener("abort", leave)
}

const leave = () => classList.remove(RESTS)

/** Nothing is pointed at any more. */
export function rest() {
  if (x < 0 || classList.contains(RESTS)) return
  classList.add(RESTS)
  for (let at = document.elementFromPoint(x, y); at; at = at.parentElement) {
    for (const name of LEAVES) at.dispatchEvent(new (name.startsWith("p") ? PointerEvent : MouseEvent)(name, { clientX: x, clientY: y }))
  }
}
