// @ts-check
// What a saved view is, in its file: words, figures, their tables, and the steps of a training that travel along. Made by saving.js in
// the page, or by ui/export.py; ui/players/bundle.py puts this module and those of the figures into one script. There is no server.

import { createTrack, drawTrack, said } from "./shared/track.js"
import { element, within, write } from "./shared/dom.js"
import { handOut } from "./shared/mount.js"
import { csv } from "./shared/csv.js"
import { frames, playButton } from "./shared/play.js"
import { tables } from "./shared/save.js"
import { back, figureAt, fill } from "./stage_full.js"

/**
 * @typedef {object} Saved
 * @property {string} title the question
 * @property {string} page where in the app it is
 * @property {string} address that shows it again
 * @property {string} date
 * @property {string} version
 * @property {{ module: string, key: string, data: any, isolated?: boolean }[]} parts what each component was sent
 * @property {{ part?: number, html?: string, small?: boolean, answer?: boolean }[]} blocks figures, by their place among the parts, and words
 * @property {Record<string, string>} words explanations, as HTML
 * @property {Record<string, string>} facts
 * @property {[string, string][]} settings
 * @property {null | { steps: number[], losses: (number | null)[], marks: any[], at: number, pictures: Record<string, any>[], answers: string[], all: number }} frames
 *
 * @typedef {(message: import("./shared/mount.js").Message) => unknown} Draw
 */

const ROWS = 200 // of a table on the page; its file has all
const PLAY_MS = 350
const STAYS = "The sentence and other figures stay as they were saved: in the live view they follow your choice."
const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%:()*+-;,=.?@^_`{|}~"

/** Draws the page. @param {Saved} saved @param {Record<string, Draw>} components */
export async function begin(saved, components) {
  document.title = saved.title
  const app = within(document.body, "div", "", "", { "data-testid": "stApp", "data-test-script-state": "saved" }) // theme.js and dom.js look for them
  const top = within(app, "header"), main = within(app, "main"), draws = /** @type {(() => void)[]} */ ([])
  within(top, "p", "", saved.page)
  themeButton(top, app, () => draws.forEach((draw) => draw()))
  within(main, "h1", "", saved.title)
  const places = saved.blocks.map((block) => blockOf(main, saved, block)), now = Object.fromEntries(saved.parts.map(({ key, data }) => [key, data]))
  if (saved.frames) training(main, saved.frames, now)
  explained(main, saved)
  listen()
  await library().catch(() => within(main, "p", "gf-note", "The charts of this file are not drawn: the browser is too old, or plotly.min.js did not load."))
  saved.parts.forEach(({ module, key }, i) => {
    const place = places[saved.blocks.findIndex(({ part }) => part === i)], draw = components[module.replace(/.*\//, "")]
    const told = () => write(place.nextElementSibling ?? within(/** @type {Element} */ (place.parentElement), "p", "gf-note", "", { role: "status" }), STAYS)
    draws.push(() => draw({ data: now[key], parentElement: inside(place, saved.parts[i].isolated), key, module, setStateValue: told, setTriggerValue: told }))
  })
  draws.forEach((draw) => draw())
  tabled(/** @type {HTMLElement} */ (main.querySelector(".gf-tables")))
  document.documentElement.dataset.gfSaved = "drawn"
}

/** @param {HTMLElement} main @param {Saved} saved @param {Saved["blocks"][number]} block */
function blockOf(main, saved, { part, html = "", small, answer }) {
  if (part === undefined) {
    const words = within(main, "div", answer ? "gf-answer" : small ? "gf-said gf-small" : "gf-said")
    words.innerHTML = html // from the page, without scripts, which the file's policy would not run
    return words
  }
  return within(within(main, "figure"), "div", `gf-place st-key-${saved.parts[part].key}`)
}

/** Where a component draws: its place, or what no style of the page reaches. */
function inside(place, isolated) {
  if (!isolated) return place
  if (!place.shadowRoot) place.attachShadow({ mode: "open" }).append(.../** @type {any} */ ([...document.querySelectorAll("style")].map((style) => style.cloneNode(true))))
  return place.shadowRoot
}

// Colours ----------------------------------------------------------------------------------------

/** Light or dark as the system has it, until the button says otherwise. @param {HTMLElement} top @param {HTMLElement} app @param {() => void} redraw */
function themeButton(top, app, redraw) {
  const dark = matchMedia("(prefers-color-scheme: dark)"), button = within(top, "button", "gf-theme")
  const show = (/** @type {boolean} */ isDark) => {
    document.documentElement.dataset.theme = app.className = isDark ? "dark" : "light"
    write(button, isDark ? "Light" : "Dark")
    button.setAttribute("aria-label", isDark ? "Light page" : "Dark page")
    button.onclick = () => show(!isDark)
    redraw()
  }
  dark.addEventListener("change", () => show(dark.matches))
  show(dark.matches)
}

// Plotly's library ---------------------------------------------------------------------------------

async function library() {
  const held = /** @type {HTMLElement} */ (document.getElementById("gf-library")), text = held.textContent ?? "", { address, size } = held.dataset
  if (address) return fetched(address)
  if (!text) return
  const stream = new Blob([unpacked(text, Number(size))]).stream().pipeThrough(new DecompressionStream("deflate"))
  document.head.append(element("script", "", await new Response(stream).text()))
  held.remove()
}

/** Where many files on one site share it. @param {string} address */
function fetched(address) {
  return new Promise((resolve, reject) => document.head.append(Object.assign(element("script"), { src: address, onload: resolve, onerror: reject })))
}

/** Bytes from base 85, as ui/export.py packs them: five digits are four bytes. @param {string} text @param {number} size */
export function unpacked(text, size) {
  const value = new Uint8Array(128), view = new DataView(new ArrayBuffer((text.length / 5) * 4))
  for (let i = 0; i < DIGITS.length; i++) value[DIGITS.charCodeAt(i)] = i
  for (let i = 0, at = 0; i < text.length; at += 4) {
    let word = 0
    for (const end = i + 5; i < end; i++) word = word * 85 + value[text.charCodeAt(i)]
    view.setUint32(at, word)
  }
  return new Uint8Array(view.buffer, 0, size)
}

// The steps of a training --------------------------------------------------------------------------

function training(main, known, now) {
  const { steps, pictures, answers, at, all } = known, root = element("div", "gf-scrubber"), track = createTrack("Training step of the model shown")
  const play = within(root, "button", "gf-scrub-play"), where = element("output", "gf-scrub-where"), note = element("p", "gf-note", "", { role: "status" })
  root.append(track.root, where)
  const [answer, ...others] = main.getElementsByClassName("gf-answer")
  main.insertBefore(note, answer ?? null)
  if (steps.length < 2) return write(note, `This is step ${steps[at].toLocaleString("en")} of the training. The live view has the other ${all - 1}.`)
  note.before(root)
  others.forEach((other) => other.remove()) // they are in the answer of each step
  write(note, steps.length < all ? `This file has ${steps.length} of the ${all} steps of the training, the live view all.` : "")
  let shown = at, player = /** @type {ReturnType<typeof frames> | null} */ (null)
  const go = (/** @type {number} */ index) => {
    if (index !== shown) handOut(Object.assign(now, pictures[index]))
    shown = index
    drawTrack(track, known, index)
    const words = said(known, index).replace(" (newest)", "")
    write(where, words)
    track.slider.setAttribute("aria-valuetext", words)
    if (answer) answer.innerHTML = answers[index]
    main.dispatchEvent(new CustomEvent("gf-step", { detail: index === steps.length - 1 ? null : steps[index] }))
  }
  const stop = () => {
    player?.stop()
    player = null
    playButton(play, false, "Play through training")
  }
  play.onclick = () => {
    if (player) return stop()
    if (shown === steps.length - 1) go(0)
    player = frames(() => 1000 / PLAY_MS, () => {
      if (shown === steps.length - 1) stop()
      else go(shown + 1)
    })
    playButton(play, true)
  }
  track.slider.oninput = () => { stop(); go(Number(track.slider.value)) }
  stop()
  go(at)
}

// Words and tables -----------------------------------------------------------------------------------

function explained(main, { words, facts, settings, address, date, version }) {
  const columns = within(main, "div", "gf-words"), named = Object.entries(words)
  for (const [title, html] of named) {
    const section = within(columns, "section")
    within(section, "h2", "", title)
    within(section, "div").innerHTML = html
  }
  within(main, "div", "gf-tables")
  const foot = within(main, "footer"), list = within(foot, "dl")
  const set = settings.filter(([name, value]) => name && value).map(([name, value]) => `${name}: ${value}`).join(" · ")
  for (const [name, text] of [...Object.entries(facts), ["Settings", set], ["Saved", `${date}, Glassformer ${version}`]]) {
    if (!text) continue
    within(list, "dt", "", name)
    within(list, "dd", "", text)
  }
  const live = within(foot, "p")
  const way = within(live, "a", "", "Open the live view", { href: address }), step = [...list.querySelectorAll("dt")].find(({ textContent }) => textContent === "Step")?.nextElementSibling
  main.addEventListener("gf-step", (/** @type {any} */ { detail }) => { // as the address and the facts of that view have it
    const there = new URL(address), newest = detail === null
    if (newest) there.searchParams.delete("step")
    else there.searchParams.set("step", detail)
    way.setAttribute("href", there.href)
    if (step) write(step, main.querySelector(".gf-scrub-where")?.textContent?.split(" · ")[0].replace("step ", "") ?? "")
  })
  within(live, "span", "", ", where everything can be changed. This file is a copy: its numbers are those that were on the screen.")
  for (const link of main.querySelectorAll("a[href]")) {
    const to = link.getAttribute("href") ?? ""
    if (to.startsWith("/")) link.setAttribute("href", new URL(to.slice(1) || ".", address).href) // pages lie one level below the root
    link.setAttribute("target", "_blank")
    link.setAttribute("rel", "noreferrer")
  }
}

/** Folds the tables behind all figures. @param {HTMLElement} box */
function tabled(box) {
  const roots = [...document.querySelectorAll("figure *")].filter((root) => tables.has(root) && root.querySelector('.gf-tools button[aria-label$="CSV"]:not([hidden])'))
  roots.forEach((root, i) => {
    const fold = within(box, "details"), name = within(fold, "summary", "", roots.length > 1 ? `The numbers behind figure ${i + 1}` : "The numbers behind the figure")
    const renewed = () => { if (fold.open) fold.replaceChildren(name, tableOf(tables.get(root)?.() ?? "")) }
    fold.addEventListener("toggle", renewed)
    for (const kind of ["gf-step", "click", "input"]) document.querySelector("main")?.addEventListener(kind, (event) => { if (!fold.contains(/** @type {Node} */ (event.target))) requestAnimationFrame(renewed) })
  })
}

/** @param {string | unknown[][]} rows */
function tableOf(rows) {
  const box = element("div", "gf-rows", "", { tabindex: 0, role: "region", "aria-label": "Table" })
  if (typeof rows === "string") {
    within(box, "pre", "", csv(rows).split("\n").slice(0, ROWS + 1).join("\n"))
    return box
  }
  const [head, ...body] = rows, table = within(box, "table"), titles = within(within(table, "thead"), "tr"), lines = within(table, "tbody")
  for (const name of head) within(titles, "th", "", String(name), { scope: "col" })
  for (const row of body.slice(0, ROWS)) {
    const line = within(lines, "tr")
    for (const value of row) within(line, "td", "", value === null || value === undefined || Number.isNaN(value) ? "" : String(value))
  }
  if (body.length > ROWS) within(box, "p", "", `The first ${ROWS} of ${body.length.toLocaleString("en")} rows. The button CSV, at the figure, saves all.`)
  return box
}

function listen() {
  document.addEventListener("gf-full", (event) => {
    const found = figureAt(/** @type {Element} */ (event.target))
    if (found) fill(found)
  })
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") back() })
}
