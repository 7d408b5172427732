// The film: which moments it shows, the page that runs alone, and the GIF's packing.
import assert from "node:assert/strict"
import { test } from "node:test"

import { lines } from "../../ui/assets/film_gif.js"
import { filmPage } from "../../ui/assets/film_page.js"
import { chosen } from "../../ui/assets/film_state.js"
import { GIFEncoder, applyPalette, quantize } from "../../ui/assets/film_pack.js"

const LOOK = { background: "#ffffff", text: "#111111", panel: "#eeeeee", line: "#cccccc", accent: "#0000ff", font: "sans-serif" }
const HOSTILE = `</script><img src=x onerror=alert(1)> & "quoted" <!--`
const FILM = {
  title: HOSTILE, about: HOSTILE, width: 300, height: 200, rest: 100, layouts: [{ title: { text: HOSTILE } }],
  frames: [0, 10].map((step) => ({ step, said: `step ${step}`, answer: HOSTILE, shots: [{ box: [0, 0, 300, 200], figure: 0, data: [{ y: [step, 1.5], name: HOSTILE }], layout: 0 }] })),
}

test("a short training is filmed whole", () => assert.deepEqual(chosen([0, 1, 5], [1], 60), [0, 1, 5]))

test("of a long one the ends and the marks stay, and what is left is spread", () => {
  const steps = Array.from({ length: 1000 }, (_, i) => 10 * i), found = chosen(steps, [330, 4440, 77], 60)
  assert.equal(found.length, 60)
  for (const step of [0, 9990, 330, 4440]) assert.ok(found.includes(step), String(step))
  assert.ok(!found.includes(77), "no such step")
  assert.deepEqual(found, [...new Set(found)].sort((a, b) => a - b))
  const gaps = found.slice(1).map((step, i) => step - found[i])
  assert.ok(Math.max(...gaps) <= 2 * (9990 / 56), `${Math.max(...gaps)}`)
})

test("marks never crowd the others out", () => {
  const steps = Array.from({ length: 200 }, (_, i) => i), found = chosen(steps, steps, 20)
  assert.equal(found.length, 20)
  assert.ok(found.some((step) => step > 100 && step < 199))
})

test("hostile words stay words in the page, and the frames come back as they were", () => {
  const page = filmPage(FILM, LOOK, `const odd = "</script><!--"`)
  assert.equal(page.match(/<\/script/g).length, 3, "the frames, the library and the player: each ends once")
  assert.equal(page.match(/<img/g), null)
  const [, data] = /<script type="application\/json" id="film">(.*?)<\/script>/s.exec(page)
  assert.deepEqual(JSON.parse(data), FILM)
  assert.match(page, /<title>&#60;\/script&#62;/)
  const [, library] = /<script>(const odd.*?)<\/script>/s.exec(page)
  assert.equal(new Function(`${library}; return odd`)(), "</script><!--")
})

test("nothing is fetched by the page, and without Plotly's figures it has no library", () => {
  const page = filmPage({ ...FILM, title: "t", about: "a" }, LOOK, "")
  assert.equal(page.match(/<script/g).length, 2)
  assert.equal(page.match(/(src|href)="|url\(|@import|https?:/g), null)
})

test("colours of a page cannot end its style", () => {
  assert.ok(!filmPage(FILM, { ...LOOK, accent: "red;}</style><b>" }, "").includes("<b>"))
})

test("a text is cut into lines between its words", () => {
  const wide = (text) => text.length
  assert.deepEqual(lines("one two three four", 9, wide), ["one two", "three", "four"])
  assert.deepEqual(lines("", 9, wide), [])
  assert.deepEqual(lines("endless-word a", 5, wide), ["endless-word", "a"])
})

/** A GIF's frames as lists of colours, read as the format says. */
function read(bytes) {
  let at = 13
  const frames = [], blocks = () => {
    const all = []
    for (let n = bytes[at++]; n; n = bytes[at++]) all.push(...bytes.slice(at, (at += n)))
    return all
  }
  for (;;) {
    const what = bytes[at++]
    if (what === 0x3b) return frames
    if (what === 0x21) {
      at++
      blocks()
      continue
    }
    at += 8
    const colours = 1 << ((bytes[at++] & 7) + 1), palette = bytes.slice(at, (at += 3 * colours)), depth = bytes[at++]
    const data = blocks(), clear = 1 << depth, pixels = []
    let table = [], size = depth + 1, before = null, bit = 0
    for (;;) {
      let code = 0
      for (let i = 0; i < size; i++, bit++) code |= ((data[bit >> 3] >> (bit & 7)) & 1) << i
      if (code === clear + 1) break
      if (code === clear) {
        table = Array.from({ length: clear + 2 }, (_, i) => [i])
        size = depth + 1
        before = null
        continue
      }
      const run = table[code] ?? [...before, before[0]]
      if (before && table.length < 4096) table.push([...before, run[0]])
      if (table.length === 1 << size && size < 12) size++
      pixels.push(...run)
      before = run
    }
    frames.push(pixels.map((one) => [...palette.slice(3 * one, 3 * one + 3)]))
  }
}

test("what is packed is read again as it was, frame by frame", () => {
  const file = GIFEncoder(), wanted = []
  let state = 1
  for (const few of [1, 2, 3, 200]) {
    const wide = 90, data = new Uint8ClampedArray(wide * wide * 4).fill(255), seen = []
    for (let i = 0; i < wide * wide; i++) {
      state = (state * 48271) % 2147483647 // noise, so that the table of codes runs full and is begun again
      const shade = state % few
      seen.push([(shade % 16) * 16, (shade >> 4) * 16, (shade % 8) * 32])
      data.set(seen[i], 4 * i)
    }
    const palette = quantize(data, 256)
    file.writeFrame(applyPalette(data, palette), wide, wide, { palette, delay: 100 })
    wanted.push(seen)
  }
  file.finish()
  const bytes = [...file.bytes()]
  assert.equal(String.fromCharCode(...bytes.slice(0, 6)), "GIF89a")
  assert.deepEqual(read(bytes), wanted)
})

test("a picture of more colours than the palette gets near ones", () => {
  const data = new Uint8ClampedArray(64 * 64 * 4).fill(255)
  for (let i = 0; i < 64 * 64; i++) data.set([(i % 64) * 4, (i >> 6) * 4, 128], 4 * i)
  const palette = quantize(data, 64), places = applyPalette(data, palette)
  assert.equal(palette.length, 64)
  for (const [i, place] of places.entries())
    for (const c of [0, 1, 2]) assert.ok(Math.abs(palette[place][c] - data[4 * i + c]) <= 32)
})
