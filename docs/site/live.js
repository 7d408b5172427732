// @ts-check
// The working figures of the site: each is a page of its own in a frame, which is as high as what it shows.

const STEP_MS = 900
const quiet = matchMedia("(prefers-reduced-motion: reduce)")

for (const frame of /** @type {NodeListOf<HTMLIFrameElement>} */ (document.querySelectorAll("iframe.live"))) {
  frame.addEventListener("load", () => loaded(frame))
  if (frame.contentDocument?.readyState === "complete" && frame.contentDocument.URL !== "about:blank") loaded(frame)
}
for (const choice of /** @type {NodeListOf<HTMLSelectElement>} */ (document.querySelectorAll(".live-choice select")))
  choice.addEventListener("change", () => {
    const frame = /** @type {HTMLIFrameElement} */ (choice.closest(".figure").querySelector("iframe"))
    frame.src = choice.value
  })

/** @param {HTMLIFrameElement} frame */
function loaded(frame) {
  const inside = frame.contentDocument // none where the site is opened from a disk
  if (!inside?.body) return
  new ResizeObserver(() => { frame.style.height = `${inside.body.scrollHeight}px` }).observe(inside.body)
  if ("moves" in frame.dataset && !quiet.matches) whenDrawn(inside, () => move(inside))
}

/** @param {Document} inside @param {() => void} then */
function whenDrawn(inside, then) {
  if (inside.documentElement.dataset.gfSaved === "drawn") then()
  else setTimeout(() => whenDrawn(inside, then), 100)
}

/** Takes the slider once from its beginning to its end, in less than five seconds, unless somebody touches the figure. @param {Document} inside */
function move(inside) {
  const slider = /** @type {HTMLInputElement | null} */ (inside.querySelector('.gf-live-depth input[type="range"]'))
  if (!slider) return
  let at = 0, timer = /** @type {any} */ (0)
  const stop = () => clearTimeout(timer)
  const step = () => {
    slider.value = String(at)
    slider.dispatchEvent(new Event("input", { bubbles: true }))
    if (at++ < Number(slider.max)) timer = setTimeout(step, STEP_MS)
  }
  for (const kind of ["pointerdown", "keydown"]) inside.addEventListener(kind, stop, { once: true, capture: true })
  step()
}
