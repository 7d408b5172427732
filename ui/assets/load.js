// @ts-check
// What the inline script of a component fetches first: it brings the component's own module and its styles, each once
// for the whole page, and draws nothing before both are there, so that nothing is ever seen without its style.
// See ui/players/component.py.

// What the components share is fetched at once, beside a component's own module, and not one after the other as the imports
// in them would have it. A failure is the component's to tell.
const SHARED = ["colours", "csv", "dom", "keys", "mount", "numbers", "picture", "play", "progress_state", "progress_store", "save", "shelf", "shots", "theme"]
for (const name of SHARED) import(`./shared/${name}.js`).catch(() => {})
// At once: Streamlit may have written an address without it by the time that the stage's own module is here.
if (new URL(location.href).searchParams.get("stage") === "1") document.documentElement.dataset.gfStaged = ""
Promise.all([import("./shared/history.js"), import("./stage_state.js")]).then(([{ amended, install }, { putStage, tab }]) => {
  install()
  amended((address) => putStage(address, tab.staged))
}, () => {})

/**
 * @typedef {import("./shared/mount.js").Message} Message
 * @typedef {(message: Message) => (() => void) | void | Promise<(() => void) | void>} Draw
 */

let pending = 0

/**
 * Counts this work in `data-gf-pending` of the page's root until it ends: 0 means that every component is loaded and drawn,
 * which whoever takes a picture of the page waits for.
 * @template T
 * @param {Promise<T>} work
 */
export function counted(work) {
  const { dataset } = document.documentElement
  dataset.gfPending = String(++pending)
  return work.finally(() => { dataset.gfPending = String(--pending) })
}

/** @type {WeakMap<Node, Map<string, { done: boolean, promise: Promise<void> }>>} */
const sheets = new WeakMap() // by the document or the shadow root that they are in

/**
 * The function that draws the component whose module is {name}.js below the root, in the styles {styles}.css. `ahead` are
 * scripts below app/static/ that the module will ask for: their fetching begins now.
 * @param {string} name
 * @param {string[]} styles
 * @param {string[]} [ahead]
 * @returns {Promise<Draw>}
 */
export async function load(name, styles, ahead = []) {
  for (const style of styles) preload("style", address(style))
  for (const script of ahead) preload("script", new URL(`../../../${script}`, import.meta.url).href)
  const { default: draw } = await counted(import(`../../${name}.js`))
  return (message) => {
    const root = message.parentElement.getRootNode()
    const missing = styles.map((style) => styled(root, address(style))).filter((sheet) => !sheet.done)
    if (!missing.length) return draw({ ...message, module: name })
    const arrived = Promise.all(missing.map((sheet) => sheet.promise))
    return counted(Promise.race([arrived, removed(root, missing)]).then(() => root.isConnected ? draw({ ...message, module: name }) : undefined))
  }
}

// Styles that are on their way when their root leaves the page never arrive.
async function removed(root, missing) {
  while (root.isConnected && missing.some((sheet) => !sheet.done)) await new Promise(requestAnimationFrame)
}

const address = (style) => new URL(`../../${style}.css`, import.meta.url).href

function preload(kind, href) {
  if (document.head.querySelector(`link[href="${href}"]`)) return
  document.head.append(Object.assign(document.createElement("link"), { rel: "preload", as: kind, href }))
}

// A style sheet that does not come leaves its component unstyled: that is better than not at all.
function styled(root, href) {
  if (!sheets.has(root)) sheets.set(root, new Map())
  const held = sheets.get(root)
  if (!held.has(href)) {
    const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href })
    const sheet = { done: false, promise: Promise.resolve() }
    sheet.promise = new Promise((resolve) => {
      link.onload = link.onerror = () => { sheet.done = true; resolve() }
    })
    held.set(href, sheet)
    // Below Streamlit's own styles, as the ones inside a component were.
    ;(root === document ? document.body : root).append(link)
  }
  return held.get(href)
}
