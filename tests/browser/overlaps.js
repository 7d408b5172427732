// What lies over a text of the open page: another text, a save button that is seen where a pointer rests, a line, a marker.
// Returns [text, what lies over it] pairs. Boxes are turned as their texts are; letters are lower than their boxes, which shrink.
() => {
  const main = document.querySelector('[data-testid="stMain"]'), SHRINK = 0.22, EDGE = 1.5
  const folded = 'details:not([open]) > :not(summary), [data-testid="stPopoverBody"], [aria-hidden="true"], .katex-mathml, .gf-card, option, select'
  const opaque = (e) => { // seen at all: Plotly and the pages hide by each of these
    for (let up = e; up && up !== main; up = up.parentElement) {
      const style = getComputedStyle(up)
      if (style.visibility === "hidden" || style.display === "none" || Number(style.opacity) < 0.1) return false
    }
    return true
  }
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
  const hull = (quad) => ({ left: Math.min(...quad.map((p) => p.x)), right: Math.max(...quad.map((p) => p.x)), top: Math.min(...quad.map((p) => p.y)), bottom: Math.max(...quad.map((p) => p.y)) })
  const corners = ({ left, right, top, bottom }) => [{ x: left, y: top }, { x: right, y: top }, { x: right, y: bottom }, { x: left, y: bottom }]
  const cut = (e, box) => { // what of it can be seen, where it scrolls inside something
    for (let up = e instanceof SVGElement ? e.parentElement : e; up && up !== main; up = up.parentElement) {
      if (up instanceof SVGElement || getComputedStyle(up).overflow === "visible") continue
      const r = up.getBoundingClientRect()
      box = { left: Math.max(box.left, r.left), right: Math.min(box.right, r.right), top: Math.max(box.top, r.top), bottom: Math.min(box.bottom, r.bottom) }
    }
    return box
  }
  const sticky = (e) => { // a heading below which a list scrolls
    for (let up = e; up && up !== main; up = up.parentElement) if (getComputedStyle(up).position === "sticky") return up
    return null
  }
  const texts = []
  const add = (e, quad, said, extra = {}) => texts.push({ e, quad, said: said.trim().slice(0, 50), ...hull(quad), ...extra })
  const cloud = new Set([...main.querySelectorAll("svg .scatterlayer")].filter((e) => e.querySelectorAll(".textpoint").length > 48)) // names that lie where their points do
  for (const e of main.querySelectorAll("svg text")) {
    if (cloud.has(e.closest(".scatterlayer")) || !e.textContent.trim() || e.closest(folded) || !opaque(e) || getComputedStyle(e).fill === "none" || !e.getBoundingClientRect().width) continue
    const rows = e.querySelectorAll(":scope > tspan.line"), parts = rows.length ? [...rows] : [e]
    for (const part of parts) {
      if (!part.textContent.trim()) continue
      const m = part.getScreenCTM()
      let b = part.getBBox?.()
      if (!b || !b.width) continue
      const size = parseFloat(getComputedStyle(part).fontSize), low = Math.max(0, (b.height - size) / 2) + size * SHRINK / 2 // of an equal height below and above
      const side = Math.min(EDGE, b.width / 4)
      const at = (x, y) => new DOMPoint(x, y).matrixTransform(m)
      const quad = [at(b.x + side, b.y + low), at(b.x + b.width - side, b.y + low), at(b.x + b.width - side, b.y + b.height - low), at(b.x + side, b.y + b.height - low)]
      const box = hull(quad), seen = cut(e, box)
      if (seen.right - seen.left < 2 || seen.bottom - seen.top < 2) continue
      const ground = e.parentElement.querySelector(":scope > rect.bg") // an annotation's own ground hides what lies below it
      add(part, quad, part.textContent, { svg: e.closest("svg"), backed: !!ground && Number(getComputedStyle(ground).fillOpacity) * Number(getComputedStyle(ground).opacity) > 0.5
        && !/, 0\)$|transparent|none/.test(getComputedStyle(ground).fill), halo: getComputedStyle(e).paintOrder.startsWith("stroke") && getComputedStyle(e).stroke !== "none" })
    }
  }
  const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const e = node.parentElement
    if (!node.textContent.trim() || e.closest("svg, style, script, .katex, pre code, [data-testid=stIconMaterial]") || e.closest(folded)) continue
    const range = document.createRange()
    range.selectNodeContents(node)
    const rects = [...range.getClientRects()].filter((r) => r.width > 1 && r.height > 1)
    if (!rects.length || e.closest(".gf-tools") || !opaque(e)) continue
    const size = parseFloat(getComputedStyle(e).fontSize)
    for (const r of rects) {
      const low = Math.max(0, (r.height - size) / 2) + size * SHRINK / 2
      const seen = cut(e, { left: r.left + EDGE, right: r.right - EDGE, top: r.top + low, bottom: r.bottom - low })
      if (seen.right - seen.left > 2 && seen.bottom - seen.top > 2) add(e, corners(seen), node.textContent)
    }
  }
  const apart = (a, b) => a.some((p, i) => { // by an edge of a
    const q = a[(i + 1) % a.length], n = { x: q.y - p.y, y: p.x - q.x }
    const side = (points) => points.map((s) => s.x * n.x + s.y * n.y)
    return Math.max(...side(a)) <= Math.min(...side(b)) || Math.max(...side(b)) <= Math.min(...side(a))
  })
  const over = (a, b) => meet(hull(a), hull(b)) && !apart(a, b) && !apart(b, a)
  const found = new Map(), say = (text, what) => found.set(`${text.said}|${what}`, [text.said, what])
  texts.forEach((a, i) => {
    for (const b of texts.slice(i + 1)) {
      if (a.e === b.e || a.e.contains(b.e) || b.e.contains(a.e) || !meet(a, b) || !over(a.quad, b.quad) || sticky(a.e) !== sticky(b.e)) continue
      say(a, `text: ${b.said}`)
    }
  })
  for (const tools of main.querySelectorAll(".gf-tools")) tools.parentElement.closest(".gf-plot, .gf-saves").dispatchEvent(new PointerEvent("pointerenter"))
  for (const tools of main.querySelectorAll(".gf-tools")) for (const button of tools.querySelectorAll("button")) {
    const r = button.getBoundingClientRect()
    if (!r.width || tools.closest(folded)) continue
    for (const text of texts) if (meet(text, r) && over(text.quad, corners(r))) say(text, `button: ${button.textContent}`)
  }
  const inside = (quad, { x, y }) => {
    const turns = quad.map((p, i) => { const q = quad[(i + 1) % 4]; return (q.x - p.x) * (y - p.y) - (q.y - p.y) * (x - p.x) })
    return turns.every((t) => t >= 0) || turns.every((t) => t <= 0)
  }
  // A filled shape around a text, drawn after a line, hides the line.
  const filled = [...main.querySelectorAll("svg path, svg rect, svg circle, svg ellipse")].filter((e) => {
    const { fill, fillOpacity, opacity } = getComputedStyle(e)
    return fill !== "none" && !/, 0(\.\d+)?\)$/.test(fill) && Number(fillOpacity) * Number(opacity) > 0.7
  }).map((e) => ({ e, box: e.getBoundingClientRect() })).filter(({ box }) => box.width > 4 && box.height > 4)
  const grounds = new Map()
  const ground = (t) => {
    const [x, y] = [(t.left + t.right) / 2, (t.top + t.bottom) / 2]
    if (!grounds.has(t)) grounds.set(t, filled.filter(({ box }) => box.left < x && x < box.right && box.top < y && y < box.bottom))
    return grounds.get(t)
  }
  const hidden = (line, t) => ground(t).some(({ e }) => e !== line && line.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING)
  const lines = main.querySelectorAll("svg path, svg line, svg polyline, svg circle, svg ellipse, svg rect")
  for (const e of lines) {
    const r = e.getBoundingClientRect()
    const near = texts.filter((t) => t.svg && !t.backed && !t.halo && meet(t, { left: r.left - 1, right: r.right + 1, top: r.top - 1, bottom: r.bottom + 1 }))
    if (!near.length) continue
    const style = getComputedStyle(e), point = e.matches(".point, .legendpoints path")
    const stroked = style.stroke !== "none" && parseFloat(style.strokeWidth) > 0 && Number(style.strokeOpacity) > 0.25 && !/, 0(\.[01]\d*)?\)$/.test(style.stroke)
    if (!(stroked || (point && e.closest(".scatterlayer"))) || e.closest(`${folded}, defs, .gridlayer, .zerolinelayer, .hoverlayer, .legendtoggle, .katex, [data-testid=stIconMaterial]`) || e.matches(".bg, .legendtoggle, .crisp.ygrid, .crisp.xgrid, [data-apart]") || !opaque(e)) continue
    const clip = e.closest("[clip-path]")?.getAttribute("clip-path")?.match(/#([^'")]+)/)?.[1]
    const window_ = clip && document.getElementById(clip)?.querySelector("rect")
    const gaps = clip && document.getElementById(clip)?.querySelector("path") // Plotly cuts contours off around their numbers
    const m = e.getScreenCTM()
    let bounds = null
    if (window_) {
      const c = e.closest("[clip-path]").getScreenCTM(), [x, y, w, h] = ["x", "y", "width", "height"].map((n) => Number(window_.getAttribute(n) ?? 0))
      bounds = hull([[x, y], [x + w, y], [x + w, y + h], [x, y + h]].map(([a, b]) => new DOMPoint(a, b).matrixTransform(c)))
    }
    const back = gaps && e.closest("[clip-path]").getScreenCTM().inverse()
    const visible = (p) => (!bounds || (p.x >= bounds.left && p.x <= bounds.right && p.y >= bounds.top && p.y <= bounds.bottom))
      && (!gaps || gaps.isPointInFill(new DOMPoint(p.x, p.y).matrixTransform(back)))
    if (point) {
      const w = hull(corners(r)), half = Math.min(r.width, r.height) / 2
      for (const t of near) {
        const cx = (t.left + t.right) / 2, cy = (t.top + t.bottom) / 2
        if (cx > w.left && cx < w.right && cy > w.top && cy < w.bottom) continue // a label in its own marker
        const centre = { x: (r.left + r.right) / 2, y: (r.top + r.bottom) / 2 }
        if (visible(centre) && over(t.quad, corners({ left: centre.x - half * 0.8, right: centre.x + half * 0.8, top: centre.y - half * 0.8, bottom: centre.y + half * 0.8 }))) say(t, "marker")
      }
      continue
    }
    const length = e.getTotalLength?.() ?? 0
    if (!length) continue
    const scale = Math.hypot(m.a, m.b) || 1, step = Math.max(2 / scale, length / 3000)
    const points = []
    const d = e.getAttribute("d")
    if (e.matches("path") && /^[MLHVZ\d\s.,e-]+$/.test(d ?? "") && (d.match(/[LHV]/g)?.length ?? 0) > 60) { // long polygons: asking for 3,000 points takes seconds
      let x = 0, y = 0
      const to = (a, b, draw) => {
        const n = draw ? Math.ceil(Math.hypot(a - x, b - y) / step) : 1
        for (let i = 1; i <= Math.min(n, 500); i += 1) points.push(new DOMPoint(x + ((a - x) * i) / n, y + ((b - y) * i) / n).matrixTransform(m))
        x = a; y = b
      }
      for (const [, letter, rest] of d.matchAll(/([MLHV])([^MLHVZ]*)/g)) {
        const n = rest.trim().split(/[\s,]+|(?<=\d)(?=-)/).map(Number)
        if (letter === "H") to(n[0], y, true)
        else if (letter === "V") to(x, n[0], true)
        else for (let i = 0; i + 1 < n.length; i += 2) to(n[i], n[i + 1], letter === "L" || i > 0)
      }
    } else for (let at = 0; at <= length; at += step) points.push(e.getPointAtLength(at).matrixTransform(m))
    for (const t of near) {
      if (points.some((p) => visible(p) && inside(t.quad, p)) && !hidden(e, t)) say(t, `line: ${(e.getAttribute("class") ?? e.tagName).slice(0, 40)} ${e.closest("g[class]")?.getAttribute("class") ?? ""}`)
    }
  }
  return [...found.values()]
}
