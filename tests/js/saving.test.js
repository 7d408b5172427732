// What a saved view is made of: its data in its file, the name of that, the steps of a training that have room, bytes of the library.

import assert from "node:assert/strict"
import { test } from "node:test"
import { sealed } from "../../pages/output/generation/writer_state.js"
import { unpacked } from "../../ui/assets/saved.js"
import { evenly, fileName, grid, markup, placed } from "../../ui/assets/saving_state.js"

test("no text ends the element that holds it, and each comes out as it went in", () => {
  for (const title of ["</script><script>alert(1)</script>", "<!--<script>", "$& $` $' $$ {}</script>", "\u2028 \" ' \\ 👩‍🚀 שלום", "x".repeat(10000)]) {
    const file = placed('<script id="gf-saved">{}</script><script>run()</script>', { title })
    const [, held] = /<script id="gf-saved">(.*?)<\/script><script>run\(\)<\/script>$/s.exec(file)
    assert.ok(!held.includes("<"))
    assert.deepEqual(JSON.parse(held), { title })
  }
})

test("markup of a text is that text", () => {
  assert.equal(markup('<img src=x onerror="x">&'), "&lt;img src=x onerror=&quot;x&quot;&gt;&amp;")
})

test("steps that have room stand evenly, with the first, the last and the one that is shown", () => {
  assert.deepEqual(evenly(5, 99, 2), [0, 1, 2, 3, 4])
  assert.deepEqual(evenly(36, 4, 7), [0, 7, 12, 23, 35])
  assert.deepEqual(evenly(2, 0, 0), [0, 1])
})

test("of a table that is drawn as a picture the file has the rows in sight, and says how many are not", () => {
  const row = (...cells) => ({ children: cells.map((textContent) => ({ tagName: "TD", textContent })) })
  const table = (rows, all, columns) => ({
    querySelector: () => rows && { querySelectorAll: () => rows, getAttribute: (name) => ({ "aria-rowcount": String(all), "aria-colcount": String(columns) })[name] },
  })
  assert.equal(grid(table([row("a", "<b>"), row("1", "2.7873688083496395")], 2, 2)), "<table><tr><TD>a</TD><TD>&lt;b&gt;</TD></tr><tr><TD>1</TD><TD>2.78737</TD></tr></table>")
  assert.match(grid(table([row("a"), row("1")], 9, 2)), /7 more rows and 1 more column of this table: in the live view/)
  for (const rows of [null, []]) assert.equal(grid(table(rows, 9, 2)), "<p>A table that stands here is in the live view.</p>")
})

test("a branch that goes on ends where it was saved", () => {
  const self = { nodes: [{ parent: null }, { parent: 0 }, { parent: 0 }], leaves: [1, 2] }
  assert.deepEqual(sealed(self, { 1: [1, "stop"] }), { 1: [1, "stop"], 2: [2, "saved"] })
})

test("a file is called after its question", () => {
  assert.equal(fileName("Who attends to whom?"), "who-attends-to-whom.html")
  assert.equal(fileName("Wie groß? ../../x"), "wie-gro-x.html")
  assert.equal(fileName("שלום"), "view.html")
  assert.ok(fileName("word ".repeat(50)).length < 70)
})

test("five digits are four bytes", () => {
  // What Python makes: base64.b85encode(bytes([0, 1, 2, 253, 254, 255, 60, 38])) with , . : for < > &
  assert.deepEqual([...unpacked("009F1{{K8C", 7)], [0, 1, 2, 253, 254, 255, 60])
})
