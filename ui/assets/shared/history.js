// @ts-check
// The address of the page: which changes of it the browser's Back stops at, and what stands in it without the server.
//
// Streamlit writes an address anew for every control that the server sets, and once more for another page. A step of a person
// is one entry of the history, whatever the server writes after it; what moves by itself adds none.

/** @typedef {(address: URL, back: boolean) => void} Amend changes an address before it is written, or after Back has led to it */

let acted = false // since the last entry
/** @type {Set<Amend>} */
const amends = new Set()
/** @type {Set<() => void>} */
const watchers = new Set()

/**
 * Where a scene ends and another begins: the path, and the place in a course.
 * @param {string | URL} address
 */
export function sceneOf(address) {
  const { pathname, searchParams } = new URL(address)
  return [pathname, searchParams.get("course"), searchParams.get("scene")].join(" ")
}

/**
 * Whether an address is one of another scene than that which is shown, of the same course.
 * @param {string | URL} written
 * @param {string} shown
 */
export function leavesScene(written, shown) {
  const [to, from] = [new URL(written, shown).searchParams, new URL(shown).searchParams]
  return from.has("course") && from.get("course") === to.get("course") && from.get("scene") !== to.get("scene")
}

/** Has `amend` change every address that is written. @param {Amend} amend */
export function amended(amend) {
  amends.add(amend)
}

/**
 * Calls `moved` whenever an address was written, or Back has led to one, until the signal comes.
 * @param {() => void} moved
 * @param {AbortSignal} signal
 */
export function watched(moved, signal) {
  watchers.add(moved)
  signal.addEventListener("abort", () => watchers.delete(moved))
}

/** Amends the address as it stands; `back` where it is that of an entry that was there before. */
export function amendNow(back = false) {
  const address = amendedAddress(location.href, back)
  if (address !== location.href) History.prototype.replaceState.call(history, history.state, "", address)
}

function amendedAddress(/** @type {string | URL} */ written, back = false) {
  const address = new URL(written, location.href)
  for (const amend of amends) amend(address, back)
  return address.href
}

/** Goes to another address of the app, as its link does: a new entry, and Streamlit draws what Back would show there. @param {string | URL} address */
export function visit(address) {
  acted = true
  history.pushState({}, "", address)
  dispatchEvent(new PopStateEvent("popstate"))
}

/** Draws the address anew, under its own entry. @param {string | URL} address */
export function revisit(address) {
  acted = true
  history.replaceState({}, "", address)
  dispatchEvent(new PopStateEvent("popstate"))
}

/** Takes over the browser's own functions, before the first component is there. */
export function install() {
  const real = { pushState: history.pushState, replaceState: history.replaceState }
  for (const name of /** @type {const} */ (["pushState", "replaceState"])) {
    history[name] = (state, unused, url) => {
      // From scene to scene a person goes: what the server sends by itself was written for one that is left already.
      if (!acted && leavesScene(url ?? location.href, location.href)) return
      const adds = name === "pushState" && acted
      acted = false
      real[adds ? "pushState" : "replaceState"].call(history, state, unused, amendedAddress(url ?? location.href))
      for (const moved of watchers) moved()
    }
  }
  for (const name of ["pointerdown", "click", "keydown"]) document.addEventListener(name, () => { acted = true }, { capture: true })
  addEventListener("popstate", () => {
    acted = false
    amendNow(true)
    for (const moved of watchers) moved()
  }, { capture: true })
}
