// @ts-check
// Save as HTML: the view that is on the screen as one file. What components were sent, and the words around them, are taken from
// the page as they stand; the server adds the modules, styles and explanations (ui/export.py). ./saved.js draws them in the file.

import { counted } from "./load.js"
import { button, ROOT, running, within, write } from "./shared/dom.js"
import { messages } from "./shared/mount.js"
import { download } from "./shared/save.js"
import { place } from "./scrubber_state.js"
import { ASIDE, CONTROLS, evenly, fileName, grid, markup, MOST, placed, settings } from "./saving_state.js"

const LOOK_MS = 50
const NO_PART = [...ASIDE.map((key) => `.st-key-${key}`), "[data-testid=stPopoverBody]"].join()
const EMBED = (/** @type {string} */ name, /** @type {string} */ title) =>
  `<iframe src="${name}" title="${markup(title)}" style="width: 100%; height: 900px; border: 0" loading="lazy" sandbox="allow-scripts allow-downloads allow-popups allow-popups-to-escape-sandbox"></iframe>`

/** @typedef {{ module: string, key: string, data: any, isolated?: boolean }} Part a component and what it was sent */
/** @typedef {{ part?: number, html?: string, small?: boolean, answer?: boolean }} Block a figure, by its place among the parts, or words */

/** Opens the dialog, in `host`. @param {HTMLElement} host @param {string} token of this tab, for ui/export.py */
export function openSaving(host, token) {
  const dialog = within(host, "dialog", "gf-saving", "", { "aria-label": "Save as HTML" }), title = question(), name = fileName(title)
  within(dialog, "p", "gf-saving-head", "Save as HTML")
  within(dialog, "p", "", "One file with the figures as they are now, the answer and the explanation. It opens in any browser, without a network.")
  if (typed()) within(dialog, "p", "gf-saving-note", "The file contains the text that you typed.")
  const said = within(dialog, "p", "gf-saving-said", "", { role: "status" }), row = within(dialog, "div", "gf-room-buttons")
  const press = (/** @type {HTMLButtonElement} */ pressed) => {
    pressed.disabled = true
    counted(save(token, name, (words) => write(said, words)))
      .then(() => write(said, `Saved as ${name}.`), () => write(said, "The file could not be made. Reload the page and try again."))
      .finally(() => { pressed.disabled = false })
  }
  const first = row.appendChild(button("Save", "Save as HTML", press))
  first.className = "gf-room-main"
  row.append(button("Copy embed code", "Copy the code of a frame that shows the file on another page", () => copy(dialog, EMBED(name, title), said)), button("Close", "Close without saving", () => dialog.close()))
  dialog.addEventListener("close", () => dialog.remove())
  dialog.showModal()
  first.focus()
}

const main = () => /** @type {HTMLElement} */ (document.querySelector('[data-testid="stMainBlockContainer"]'))
const question = () => document.querySelector(".st-key-question_line h2, [data-testid=stMain] h2")?.textContent?.trim() || document.title

/** Whether a text on the page is the visitor's. */
function typed() {
  if (new URL(location.href).searchParams.has("text")) return true
  const fields = /** @type {NodeListOf<HTMLInputElement>} */ (main().querySelectorAll("textarea, input[type=text]:not([role=combobox])"))
  return [...fields].some((field) => field.value.trim())
}

async function copy(dialog, text, said) {
  const area = within(dialog, "textarea", "gf-saving-code", "", { readonly: "", rows: 3, "aria-label": "Embed code" })
  dialog.querySelectorAll(".gf-saving-code").forEach((/** @type {Element} */ other) => { if (other !== area) other.remove() })
  area.value = text
  area.select()
  const done = await navigator.clipboard?.writeText(text).then(() => true, () => false)
  write(said, done ? "Copied. Paste it into a page in the folder of the saved file." : "Copy the code below, and paste it into a page in the folder of the saved file.")
}

/** @param {string} token @param {string} name @param {(words: string) => void} tell */
async function save(token, name, tell) {
  while (running()) await new Promise((done) => { setTimeout(done, LOOK_MS) }) // what is on its way belongs to what is seen
  tell("Saving …")
  const { parts, blocks, values, training } = gathered(main())
  const components = [...new Set(parts.map(({ module }) => module.replace(/.*\//, "")))].sort().join()
  const answer = await fetch(new URL(`live/saved/${token}?components=${components}`, ROOT), { cache: "no-store" })
  if (!answer.ok) throw Error(String(answer.status))
  const { file, saved } = await answer.json()
  saved.facts.Model ||= document.querySelector(".st-key-subject_bar p")?.textContent ?? ""
  const frames = training && parts.length ? await framesOf(training, parts, blocks.filter((block) => block.answer).map(({ html }) => html).join(""), tell) : null
  const whole = {
    ...saved, parts, blocks, frames, title: question(), address: location.href, date: new Date().toISOString().slice(0, 10),
    page: document.querySelector(".st-key-page_line h1")?.textContent ?? "", settings: values,
  }
  download(name, new Blob([placed(file, whole)], { type: "text/html" }))
}

/**
 * What is on the page, in its order.
 * @param {Element} root
 */
function gathered(root) {
  const parts = /** @type {Part[]} */ ([]), blocks = /** @type {Block[]} */ ([]), values = /** @type {[string, string][]} */ ([])
  let training = /** @type {any} */ (null)
  const walk = (/** @type {Element | ShadowRoot} */ node) => {
    if (node instanceof ShadowRoot) return [...node.children].forEach(walk)
    if (node.matches(NO_PART)) return
    const sent = messages.get(node), test = node instanceof HTMLElement ? node.dataset.testid : ""
    if (sent) {
      const component = sent.module.replace(/.*\//, "")
      if (component === "scrubber") training = sent.data
      else if (sent.data.course?.on) training = sent.data.course // Home's map has its scrubber in it
      if (!CONTROLS.includes(component)) blocks.push({ part: parts.push(partOf(node, sent)) - 1 })
      return
    }
    const found = settings(/** @type {HTMLElement} */ (node))
    if (found) { values.push(found); return }
    if (["stMarkdown", "stAlert", "stProgress"].includes(test ?? "")) {
      const html = markup(node)
      if (html) blocks.push({ html, small: !!node.querySelector("[data-testid=stCaptionContainer]"), answer: !!node.closest(".st-key-answer") })
    } else if (test === "stCode") blocks.push({ html: `<pre>${markup(/** @type {Element} */ (node.querySelector("code, pre")).textContent ?? "")}</pre>` })
    else if (test === "stDataFrame") blocks.push({ html: grid(node) })
    else if (test === "stMetric" || node.matches("table")) blocks.push({ html: node.matches("table") ? markup(node) : `<p>${[...node.children].map(markup).join(" ")}</p>` })
    else if (test === "stExpander" && node.querySelector("summary")) {
      const inside = /** @type {Element | null} */ (node.querySelector("details[open] [data-testid=stExpanderDetails]"))
      if (!inside?.querySelector("[data-testid=stElementContainer]")) return
      blocks.push({ html: `<h2>${markup(node.querySelector("summary [data-testid=stMarkdownContainer]")?.textContent ?? "")}</h2>` })
      walk(inside)
    } else [...(node.shadowRoot ? [node.shadowRoot] : []), ...node.children].forEach(walk)
  }
  walk(root)
  return { parts, blocks, values, training }
}

/**
 * A component as a file can hold it, with the key that the page's Python has given it: bytes are the text of Plotly's message.
 * @param {Element} node
 * @param {{ module: string, data: any }} sent
 * @returns {Part}
 */
function partOf(node, { module, data }) {
  const root = node.getRootNode(), isolated = root instanceof ShadowRoot, around = (isolated ? root.host : node).closest('[class*="st-key-"]')
  const key = [...(around?.classList ?? [])].find((name) => name.startsWith("st-key-"))?.slice("st-key-".length) ?? ""
  return { module, key, isolated, data: ArrayBuffer.isView(data) ? new TextDecoder().decode(data) : data }
}

/**
 * The figures at other steps of the training, where they come past Streamlit: all of them, or as many as the file has room for.
 * @param {any} training what the scrubber was sent
 * @param {Part[]} parts
 * @param {string} said the answer at the step that is shown
 * @param {(words: string) => void} tell
 */
async function framesOf({ steps, losses, marks, shown, frames: token }, parts, said, tell) {
  if (steps.length < 2) return null
  const size = JSON.stringify(parts).length, at = place(steps, shown), wanted = token ? evenly(steps.length, Math.floor(MOST / size), at) : [at], known = [], pictures = [], answers = []
  for (const index of wanted) {
    tell(`Saving … step ${wanted.indexOf(index) + 1} of ${wanted.length}`)
    const last = index === steps.length - 1
    const answer = index === at ? null : await fetch(new URL(`live/frame/${token}?step=${last ? -1 : steps[index]}`, ROOT), { cache: "no-store" })
    const here = { whole: index === at, parts: Object.fromEntries(parts.map(({ key, data }) => [key, data])), answer: said }
    const { whole, parts: sent, answer: then } = answer?.status === 200 ? await answer.json() : here
    if (!whole) continue // the page differs there in more than its figures
    known.push(index)
    pictures.push(Object.fromEntries(parts.map(({ key }) => [key, sent[key]])))
    answers.push(then.replace(/<a href="#[^"]*">(.*?)<\/a>/g, "$1").trim())
  }
  const pick = (/** @type {any[]} */ all) => known.map((index) => all[index])
  return { steps: pick(steps), losses: pick(losses), marks: marks ?? [], at: known.indexOf(at), pictures, answers, all: steps.length }
}
