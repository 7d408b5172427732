// @ts-check
// Nothing moves: a still copy of the page lies over it until it is released. Below it the page lives on, unseen, and players wait.

import { element, within } from "./shared/dom.js"

/** @type {HTMLElement | null} */
let copy = null

export const isFrozen = () => copy !== null

export function freeze() {
  const main = /** @type {HTMLElement | null} */ (document.querySelector('[data-testid="stMain"]'))
  if (!main || copy) return
  copy = element("div", "gf-frozen-copy")
  const box = main.getBoundingClientRect(), still = /** @type {HTMLElement} */ (main.cloneNode(true))
  Object.assign(copy.style, { left: `${box.left}px`, top: `${box.top}px`, width: `${box.width}px`, height: `${box.height}px`, background: getComputedStyle(main.closest('[data-testid="stApp"]') ?? main).backgroundColor })
  copy.setAttribute("inert", "")
  copy.setAttribute("aria-hidden", "true")
  for (const one of still.querySelectorAll(".gf-stage-ui, .gf-tour")) one.remove()
  copy.append(still)
  ;(main.parentElement ?? document.body).append(copy)
  fill(main, still)
  within(copy, "div", "gf-frozen-said", "Frozen · z to continue")
  document.documentElement.classList.add("gf-frozen")
}

export function release() {
  copy?.remove()
  copy = null
  document.documentElement.classList.remove("gf-frozen")
}

// What a copy of elements leaves out: what is drawn, typed, scrolled to, and what lies in a shadow root.
function fill(/** @type {HTMLElement} */ from, /** @type {HTMLElement} */ to) {
  const kept = (/** @type {Element} */ one) => !one.closest(".gf-stage-ui, .gf-tour")
  const old = [from, ...from.querySelectorAll("*")].filter(kept), made = [to, ...to.querySelectorAll("*")]
  old.forEach((one, i) => {
    const twin = /** @type {any} */ (made[i])
    if (one instanceof HTMLCanvasElement && one.width && one.height) twin.getContext("2d")?.drawImage(one, 0, 0)
    if (one instanceof HTMLInputElement || one instanceof HTMLTextAreaElement || one instanceof HTMLSelectElement) { twin.removeAttribute("name"); twin.value = one.value }
    if (one.scrollTop || one.scrollLeft) Object.assign(twin, { scrollTop: one.scrollTop, scrollLeft: one.scrollLeft })
    if (one.shadowRoot) twin.attachShadow({ mode: "open" }).append(...[...one.shadowRoot.childNodes].map((child) => child.cloneNode(true)))
    for (const moving of one.getAnimations?.() ?? []) if (moving.playState === "running") twin.style.animation = "none"
  })
}
