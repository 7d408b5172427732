// @ts-check
// An element of the page as a picture that stands by itself.

import { element } from "./dom.js"
import { themed } from "./theme.js"

const sides = (name) => ["top", "right", "bottom", "left"].map((side) => name.replace("*", side))
// What is asked as it was written (37%, auto), so that it is laid out anew ...
const LAYOUT = [
  ..."display position top right bottom left z-index float width height min-width min-height max-width max-height box-sizing".split(" "),
  ...sides("margin-*"), ...sides("padding-*"), ..."flex-grow flex-shrink flex-basis flex-direction flex-wrap order row-gap column-gap".split(" "),
  ..."align-content align-items align-self justify-content justify-items justify-self aspect-ratio vertical-align overflow-x overflow-y".split(" "),
  ..."grid-template-columns grid-template-rows grid-auto-flow grid-auto-columns grid-auto-rows".split(" "),
  ..."grid-column-start grid-column-end grid-row-start grid-row-end".split(" "),
]
// ... what is asked as it was computed ...
const PAINT = [
  ..."background-color background-image background-size background-position background-repeat box-shadow opacity filter transform".split(" "),
  ...sides("border-*-width"), ...sides("border-*-style"), ...sides("border-*-color"), "border-radius", "outline", "outline-offset", "transform-origin",
  ..."text-decoration text-overflow unicode-bidi -webkit-box-decoration-break vector-effect content".split(" "),
]
// ... and what children have from their parents.
const INHERITED = [
  ..."color direction font-family font-size font-style font-weight font-variant-numeric letter-spacing line-height text-align".split(" "),
  ..."text-underline-offset text-transform white-space overflow-wrap word-break tab-size list-style-type visibility image-rendering".split(" "),
  ..."fill fill-opacity stroke stroke-width stroke-opacity stroke-dasharray stroke-linecap stroke-linejoin text-anchor".split(" "),
]
const LOOK = [...LAYOUT, ...PAINT, ...INHERITED], FIRST_INHERITED = LAYOUT.length + PAINT.length
const MARGIN = 12
const XHTML = "http://www.w3.org/1999/xhtml", VECTOR = "http://www.w3.org/2000/svg"

function look(node, pseudo) {
  const computed = getComputedStyle(node, pseudo), written = pseudo ? null : node.computedStyleMap?.() // Firefox has none, and gets pixels
  return LOOK.map((name, i) => (i < LAYOUT.length && written?.get(name)?.toString()) || computed.getPropertyValue(name))
}

/**
 * [SVG text, width, height] of an element as it stands on the page: itself, in a page's style that is written out, on the
 * page's colour. Controls are left out; what can be scrolled is shown in full.
 * @param {HTMLElement} root
 * @returns {[string, number, number]}
 */
export function picture(root) {
  // On a stage the page is zoomed, and what fills the screen again: a picture is not, so that its text has the room it had.
  const width = root.getBoundingClientRect().width / (/** @type {any} */ (root).currentCSSZoom ?? 1)
  const host = document.body.appendChild(element("div")), shadow = host.attachShadow({ mode: "open" }) // where no style of the page comes to
  host.style.cssText = "all: initial; position: absolute; left: -100000px; top: 0; visibility: hidden"
  const sheet = { shadow, plain: new Map(), looks: new Map(), names: new Map() }
  try {
    const style = element("style"), box = element("div"), copy = /** @type {HTMLElement} */ (copied(root, sheet, null))
    const background = themed(root, "background-color", "#ffffff")
    box.style.cssText = `width: ${width}px; padding: ${MARGIN}px; background: ${background}`
    copy.style.cssText += `; width: ${width}px; margin: 0; position: static` // what fills the screen lies over the page
    style.textContent = [...sheet.names].map(([rules, name]) => rules.replaceAll("&", `.${name}`)).join("\n")
    box.append(style, copy)
    shadow.replaceChildren(box)
    const least = Math.ceil(width + 2 * MARGIN) // scrollWidth is rounded
    const size = [box.scrollWidth > least ? box.scrollWidth + MARGIN : least, Math.ceil(box.scrollHeight)]
    box.style.width = `${size[0] - 2 * MARGIN}px`
    box.style.minHeight = `${size[1] - 2 * MARGIN}px`
    const svg = document.createElementNS(VECTOR, "svg"), frame = document.createElementNS(VECTOR, "foreignObject")
    for (const node of [svg, frame]) {
      node.setAttribute("width", String(size[0]))
      node.setAttribute("height", String(size[1]))
    }
    svg.setAttribute("viewBox", `0 0 ${size.join(" ")}`)
    frame.append(box)
    svg.append(frame)
    // XML has no word for the other control characters, nor for half a pair of surrogates.
    const text = new XMLSerializer().serializeToString(svg).replace(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, "\ufffd")
    return [text, size[0], size[1]]
  } finally {
    host.remove()
  }
}

// A copy with classes of its own, or null for what is not in the picture. Text stays text: it is only ever put in as a text node.
function copied(node, sheet, parent) {
  const field = node.matches("input[type=number]") // a value is worth keeping
  if (!field && node.matches("input, select, textarea, style, .gf-tools, [data-unsaved]")) return null
  const own = dressed(node, sheet, parent)
  if (own.none) return null
  const canvas = node instanceof HTMLCanvasElement, vector = node.namespaceURI === VECTOR
  const copy = /** @type {HTMLElement} */ (document.createElementNS(vector ? VECTOR : XHTML, canvas ? "img" : field ? "span" : node.localName))
  const shape = vector ? [...node.attributes].filter(({ name }) => !/^(class|style|id|role|tabindex|href|xmlns|on.*|aria-.*|data-.*)$|:/.test(name)) : []
  for (const { name, value } of shape) copy.setAttribute(name, value)
  if (node.dir) copy.setAttribute("dir", node.dir)
  if (node.open) copy.setAttribute("open", "") // what is unfolded is seen
  copy.setAttribute("class", own.name)
  if (canvas) copy.setAttribute("src", node.toDataURL())
  else if (field) copy.textContent = node.value
  else for (const child of node.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) copy.append(child.data)
    else if (child.nodeType === Node.ELEMENT_NODE) copy.append(copied(child, sheet, own) ?? "")
  }
  if (own.scrolls) {
    const high = node.scrollHeight > node.clientHeight + 1, wide = node.scrollWidth > node.clientWidth + 1
    copy.style.cssText = `overflow: ${high || wide ? "visible" : "hidden"}; ${wide ? "width: max-content; min-width: 100%" : "min-width: 0"}`
    if (high) copy.style.cssText += "; height: auto; max-height: none"
  }
  return copy
}

// The look of a node: { name of its class, values }. To ask a browser takes long: nodes alike in parent, tag, attributes and place have one look.
function dressed(node, sheet, parent) {
  const said = [...node.attributes].filter(({ name }) => !/^(id|title|aria-label|data-.*)$/.test(name)).map(({ name, value }) => `${name}=${value}`)
  const before = node.previousElementSibling
  const key = JSON.stringify([parent?.key, node.localName, before ? `after ${before.getAttribute("class")}` : "first", !node.nextElementSibling, ...said])
  let found = sheet.looks.get(key)
  if (found) return found
  const values = look(node), at = (name) => values[LOOK.indexOf(name)]
  const usual = plain(sheet, node.namespaceURI, node.localName), basic = plain(sheet, XHTML, "div")
  const above = node.localName === "button" ? null : parent?.values // buttons do not inherit by themselves
  const rules = [`&{${differing(values, usual, basic, above)}}`]
  for (const pseudo of ["::before", "::after"]) {
    const content = getComputedStyle(node, pseudo).content
    if (content !== "none" && content !== "normal") rules.push(`&${pseudo}{${differing(look(node, pseudo), plain(sheet, XHTML, "span"), basic, values)}}`)
  }
  const text = rules.join(" ")
  if (!sheet.names.has(text)) sheet.names.set(text, `s${sheet.names.size}`)
  const scrolls = /auto|scroll/.test(at("overflow-x") + at("overflow-y"))
  found = { key: sheet.looks.size, name: sheet.names.get(text), values, none: at("display") === "none", scrolls }
  sheet.looks.set(key, found)
  return found
}

function differing(values, usual, basic, parent) {
  const differs = (value, i) => (i < FIRST_INHERITED ? value !== usual[i] : value !== parent?.[i] || usual[i] !== basic[i])
  return LOOK.map((name, i) => (differs(values[i], i) ? `${name}:${values[i]}` : "")).filter(Boolean).join(";")
}

// The look of such an element by the browser's own sheet alone.
function plain(sheet, namespace, tag) {
  const key = `${namespace} ${tag}`
  if (!sheet.plain.has(key)) {
    const node = sheet.shadow.appendChild(document.createElementNS(namespace, tag))
    sheet.plain.set(key, look(node))
    node.remove()
  }
  return sheet.plain.get(key)
}
