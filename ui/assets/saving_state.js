// @ts-check
// What a saved view is made of, from the page's elements: words as plain markup, settings as they stand. See saving.js.

// ui/view_file.py, which saves a view without a browser, reads these three here.
export const CONTROLS = ["scrubber", "tokens", "guess", "follow", "search", "stage", "terms", "tour", "solved", "progress", "progress_watch", "course_mark"] // components that are no figure
export const ASIDE = ["search_box", "stage_place", "page_line", "question_line", "own_model", "train_controls", "guess", "words", "code"] // containers whose words are not the view's
export const MOST = 3145728 // characters of the frames of a training, beside the figures that are shown

const TAGS = new Set("P STRONG EM B I CODE UL OL LI BR SUP SUB H3 H4 H5 BLOCKQUOTE TABLE THEAD TBODY TR TH TD".split(" "))
const VALUES = { // what a control of Streamlit shows
  stButtonGroup: (/** @type {Element} */ node) => [...node.querySelectorAll("[aria-checked=true]")].map(said).join(", "),
  stSelectbox: (/** @type {Element} */ node) => field(node)?.value || said(node.querySelector("[data-baseweb=select]")),
  stNumberInput: (/** @type {Element} */ node) => field(node)?.value ?? "",
  stTextInput: (/** @type {Element} */ node) => field(node)?.value ?? "",
  stTextArea: (/** @type {Element} */ node) => field(node)?.value ?? "",
  stSlider: (/** @type {Element} */ node) => [...node.querySelectorAll("[role=slider]")].map((thumb) => thumb.getAttribute("aria-valuetext") ?? thumb.getAttribute("aria-valuenow")).join(" to "),
  stCheckbox: (/** @type {Element} */ node) => (field(node)?.checked ? "on" : "off"),
}

const said = (/** @type {Element | null} */ node) => node?.textContent?.trim().replaceAll(/\s+/g, " ") ?? ""
const field = (/** @type {Element} */ node) => /** @type {HTMLInputElement | null} */ (node.querySelector("input, textarea"))

/** @param {string} text */
export const escaped = (text) => text.replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign] ?? sign)

/**
 * A text, or what an element says, as markup: paragraphs, lists, tables and links, formulas as MathML; no class, style or script.
 * @param {string | Node} node
 * @returns {string}
 */
export function markup(node) {
  if (typeof node === "string") return escaped(node)
  if (node.nodeType === 3) return escaped(node.textContent ?? "")
  if (!(node instanceof Element) || node.matches("style, script, button, svg, [data-testid=stIconMaterial], [role=img], [hidden]")) return ""
  if (node.matches(".katex-display, .katex")) return formula(node.querySelector("math"))
  const inner = [...node.childNodes].map(markup).join(""), tag = node.tagName.toLowerCase()
  if (tag === "br") return "<br>"
  if (tag === "a" && /^https?:$/.test(/** @type {HTMLAnchorElement} */ (node).protocol) && !node.getAttribute("href")?.startsWith("#"))
    return `<a href="${escaped(/** @type {HTMLAnchorElement} */ (node).href)}">${inner}</a>`
  return TAGS.has(node.tagName) ? `<${tag}>${inner}</${tag}>` : inner
}

/** MathML without TeX's own text in it. @param {Element | null} math */
function formula(math) {
  const copy = /** @type {Element | undefined} */ (math?.cloneNode(true))
  for (const note of copy?.querySelectorAll("annotation") ?? []) note.remove()
  return copy ? copy.outerHTML : ""
}

/** A number as one reads it: the canvas shows a few digits, its table all. */
const short = (/** @type {string} */ text) => (/^-?\d+\.\d{7,}$/.test(text) ? String(Number(Number(text).toPrecision(6))) : text)

/**
 * A table that Streamlit draws as a picture: what is in sight, which it holds for who hears it, and what is not.
 * @param {Element} node
 */
export function grid(node) {
  const table = node.querySelector("canvas table"), rows = [...(table?.querySelectorAll("tr") ?? [])]
  if (!table || !rows.length) return "<p>A table that stands here is in the live view.</p>"
  const lines = rows.map((row) => `<tr>${[...row.children].map((cell) => `<${cell.tagName}>${markup(short(cell.textContent ?? ""))}</${cell.tagName}>`).join("")}</tr>`)
  const beyond = [["row", "aria-rowcount", rows.length], ["column", "aria-colcount", rows[0].children.length]].flatMap(([name, all, here]) => {
    const left = Number(table.getAttribute(String(all))) - Number(here)
    return left > 0 ? [`${left} more ${name}${left > 1 ? "s" : ""}`] : []
  })
  return `<table>${lines.join("")}</table>${beyond.length ? `<p>${beyond.join(" and ")} of this table: in the live view.</p>` : ""}`
}

/**
 * What a control is called and what it stands at; null for what is none, "" where it says nothing.
 * @param {HTMLElement} node
 * @returns {[string, string] | null}
 */
export function settings(node) {
  const value = VALUES[node.dataset?.testid ?? ""], label = node.querySelector?.("[data-testid=stWidgetLabel] [data-testid=stMarkdownContainer]")
  return value ? [said(label) || (node.querySelector("input:not([role]), textarea")?.getAttribute("aria-label") ?? ""), value(node)] : null
}

/**
 * Places of `most` among so many, evenly: the first, the last and `at` among them.
 * @param {number} count
 * @param {number} most
 * @param {number} at
 */
export function evenly(count, most, at) {
  const many = Math.max(3, Math.min(most, count)), places = new Set([at])
  for (let i = 0; i < many; i++) places.add(Math.round((i * (count - 1)) / (many - 1)))
  return [...places].filter((place) => place < count).sort((a, b) => a - b)
}

/** A question as the name of a file. @param {string} title */
export function fileName(title) {
  const words = title.toLowerCase().normalize("NFKD").replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-+|-+$/g, "").slice(0, 60).replace(/-+$/, "")
  return `${words || "view"}.html`
}

/**
 * The file with what it draws in its place. Nothing in a text ends the element that holds it.
 * @param {string} file
 * @param {object} saved
 */
export const placed = (file, saved) => file.replace("{}</script>", () => `${JSON.stringify(saved).replaceAll("<", "\\u003c")}</script>`)
