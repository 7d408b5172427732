// What a browser notes of a person's progress: when a question returns, what a file may bring, and what stands in the store.
import assert from "node:assert/strict"
import { readdirSync, readFileSync } from "node:fs"
import { beforeEach, test } from "node:test"

import {
  answered, AT_ONCE, DAYS, fileOf, fileRead, freshSeed, howFar, isDue, merged, migrate, MOST_FILE, nextDay, nothing, questions, read, Refused, seen, solved, target, visited, written,
} from "../../ui/assets/shared/progress_state.js"
import { heading, ledger, upcoming } from "../../ui/assets/progress_words.js"

const DAY = 20_000 // today
const LIMITS = { settings: 5 }
const catalogue = {
  exercises: [{ id: "spread", title: "Why √d", set: "attention" }, { id: "odds", title: "Odds", set: "generation" }, { id: "size", title: "Bytes", set: "cache" }],
  guesses: [
    { id: "width", title: "√d_k", task: "spread" }, { id: "colder", title: "Half the temperature", task: "odds" },
    { id: "mask", title: "The mask", settings: ["attention?text=a", "attention?text=b"] }, { id: "gone", title: "An exercise that is gone", task: "gone" },
  ],
}
const right = (held, id, day, seed = day % 9999) => answered(held, "exercises", id, { right: true, seed }, day)
const wrong = (held, id, day, seed = day % 9999) => answered(held, "exercises", id, { right: false, seed }, day)
const titles = (held, day) => questions(held, catalogue, day).map((one) => one.title)
const plain = (held) => JSON.parse(written(held))

test("what is answered right returns after 1, 3, 7 and 21 days, and then no more", () => {
  const held = nothing()
  let day = DAY
  right(held, "size", day, 1)
  for (const [step, after] of DAYS.entries()) {
    assert.equal(isDue(held.exercises.get("size"), day + after - 1), false, `before ${after} days`)
    assert.equal(nextDay(held, catalogue, day), day + after)
    day += after
    assert.deepEqual(titles(held, day), ["Bytes"], `after ${after} days`)
    right(held, "size", day, 2 + step)
  }
  assert.equal(nextDay(held, catalogue, day), null)
  assert.deepEqual(titles(held, day + 1000), [])
})

test("a late return counts from the day on which it was answered", () => {
  const held = nothing()
  right(held, "size", DAY)
  right(held, "size", DAY + 10)
  assert.equal(held.exercises.get("size").due, DAY + 13)
})

test("a wrong answer returns after the shortest time, however far it had come, and is right again only by a return", () => {
  const held = nothing()
  right(held, "size", DAY)
  right(held, "size", DAY + 1)
  right(held, "size", DAY + 4)
  assert.equal(held.exercises.get("size").due, DAY + 11)
  wrong(held, "size", DAY + 5)
  right(held, "size", DAY + 5, 77) // at once after its hint
  const item = held.exercises.get("size")
  assert.deepEqual([item.due, item.step, item.missed], [DAY + 6, 0, true])
  right(held, "size", DAY + 6, 78)
  assert.deepEqual([item.due, item.step, item.missed], [DAY + 9, 1, false])
})

test("practising before the day, with numbers that were solved before, or beside the solution moves nothing on", () => {
  const held = nothing()
  right(held, "size", DAY, 5)
  right(held, "size", DAY, 6)
  assert.equal(held.exercises.get("size").due, DAY + 1)
  right(held, "size", DAY + 1, 5)
  assert.equal(held.exercises.get("size").step, 0)
  assert.ok(isDue(held.exercises.get("size"), DAY + 1))
  answered(held, "exercises", "size", { right: true, seed: 9, helped: true }, DAY + 1)
  const item = held.exercises.get("size")
  assert.deepEqual([item.step, item.due, item.missed, item.seeds], [0, DAY + 2, false, [6, 5]])
  wrong(held, "size", DAY + 2)
  answered(held, "exercises", "size", { right: true, seed: 10, helped: true }, DAY + 3)
  assert.deepEqual([item.due, item.missed], [DAY + 4, true])
})

test("an answer after its solution was open solves nothing, and is no guess that was right", () => {
  const held = nothing()
  answered(held, "guesses", "width", { right: false }, DAY - 1)
  solved(held, { id: "spread", seed: 3, right: true, helped: true }, ["width"], DAY)
  assert.equal(ledger(held, 77), "Noted in this browser only: 0 of 77 exercises solved, 0 of 1 guess right, 0 views seen.")
  assert.deepEqual(held.exercises.get("spread").seeds, [])
  assert.deepEqual(titles(held, DAY + 1), ["√d_k"], "both return, as one question")
  solved(held, { id: "spread", seed: 4, right: true, helped: false }, ["width"], DAY + 1)
  assert.match(ledger(held, 77), /1 of 77 exercises solved, 1 of 2 guesses right/)
  solved(held, { id: "spread", seed: 4, right: true, helped: true }, [], DAY + 1)
  assert.deepEqual(held.exercises.get("spread").seeds, [4], "what was solved before stays so")
})

test("wrong guesses come first, then wrong answers, then the longest overdue", () => {
  const held = nothing()
  right(held, "odds", DAY - 9)
  right(held, "size", DAY - 5)
  wrong(held, "spread", DAY - 1)
  answered(held, "guesses", "mask", { right: false }, DAY - 1)
  assert.deepEqual(titles(held, DAY), ["The mask", "Why √d", "Odds", "Bytes"])
  assert.deepEqual(questions(held, catalogue, DAY).map((one) => one.why), ["wrong last time", "wrong last time", "after a day", "after a day"])
  right(held, "odds", DAY)
  assert.deepEqual(questions(held, catalogue, DAY + 3).at(-1).why, "after 3 days")
})

test("a guess returns as the exercise of its kind, once, and that answers it", () => {
  const held = nothing()
  right(held, "spread", DAY - 1, 8)
  answered(held, "guesses", "width", { right: false }, DAY - 1)
  const [one, ...more] = questions(held, catalogue, DAY)
  assert.deepEqual([one.title, more.length], ["√d_k", 0])
  const query = new URL(one.address, "http://here/").searchParams
  assert.deepEqual([query.get("set"), query.get("exercise")], ["attention", "spread"])
  const seed = Number(query.get("set_seed"))
  assert.notEqual(seed, 8)
  solved(held, { id: "spread", seed, right: true, helped: false }, ["width"], DAY)
  assert.deepEqual(titles(held, DAY), [])
  assert.deepEqual([held.guesses.get("width").missed, held.guesses.get("width").due], [false, DAY + 3])
  solved(held, { id: "spread", seed: 4, right: true, helped: false }, ["colder"], DAY)
  assert.equal(held.guesses.has("colder"), false, "who never made that guess has not answered it")
})

test("an exercise before its day leaves the guesses of its kind alone", () => {
  const held = nothing()
  answered(held, "guesses", "width", { right: false }, DAY)
  solved(held, { id: "spread", seed: 1, right: true, helped: false }, ["width"], DAY)
  const { missed, due, right: holds } = held.guesses.get("width")
  assert.deepEqual([missed, due, holds], [true, DAY + 1, 0])
})

test("an exercise with numbers that were solved before answers no guess", () => {
  const held = nothing()
  right(held, "spread", DAY - 1, 8)
  answered(held, "guesses", "width", { right: false }, DAY - 1)
  solved(held, { id: "spread", seed: 8, right: true, helped: false }, ["width"], DAY)
  assert.equal(held.guesses.get("width").missed, true)
})

test("a guess without an exercise returns at another setting each time", () => {
  const held = nothing()
  const at = () => target(held, catalogue, "guesses", "mask", DAY).address
  answered(held, "guesses", "mask", { right: false }, DAY)
  assert.equal(at(), "./attention?text=a")
  assert.deepEqual(questions(held, catalogue, DAY + 1).map((one) => one.guess), ["mask"])
  answered(held, "guesses", "mask", { right: true }, DAY + 1)
  assert.equal(at(), "./attention?text=b")
  assert.equal(target(held, catalogue, "guesses", "gone", DAY), null)
  assert.equal(target(held, catalogue, "exercises", "gone", DAY), null)
})

test("a guess with few settings returns until it was right at each of them, and no more", () => {
  for (const [id, settings] of /** @type {const} */ ([["mask", 2], ["alone", 1]])) {
    const held = nothing(), all = { ...catalogue, guesses: [...catalogue.guesses, { id: "alone", title: "Alone", settings: ["after?x=1"] }] }
    let day = DAY, returned = 0
    answered(held, "guesses", id, { right: true }, day)
    for (day = DAY; day < DAY + 100; day++) {
      if (!questions(held, all, day).length) continue
      answered(held, "guesses", id, { right: true }, day)
      returned++
    }
    assert.equal(returned, settings, id)
    assert.equal(nextDay(held, all, DAY + 1), null, "nothing is announced")
    answered(held, "guesses", id, { right: false }, day)
    assert.equal(questions(held, all, day + 1).length, 1, "who is wrong again gets it again")
  }
})

test("new numbers: a seed that was not met, the same until it is answered, another the next day", () => {
  const held = nothing(), seeds = new Set()
  for (let day = DAY; day < DAY + 60; day++) {
    const item = held.exercises.get("size"), seed = freshSeed("size", item, day)
    assert.equal(freshSeed("size", item, day), seed)
    assert.ok(seed >= 1 && seed <= 9999 && seed !== item?.last && !item?.seeds.includes(seed))
    seeds.add(seed)
    right(held, "size", day, seed)
  }
  assert.ok(seeds.size > 50)
  const taken = { ...held.exercises.get("size"), seeds: [], last: null }
  const first = freshSeed("size", taken, DAY)
  assert.notEqual(freshSeed("size", { ...taken, last: first }, DAY), first)
  assert.notEqual(freshSeed("size", { ...taken, seeds: [first] }, DAY), first)
})

test("views and scenes are noted once each, and a course knows how far one came", () => {
  const held = nothing()
  assert.deepEqual([seen(held, "attention/heads"), seen(held, "attention/heads"), seen(held, "/living"), seen(held, "<b>"), seen(held, "tokens/")], [true, false, true, false, false])
  assert.deepEqual([visited(held, "ten", 0), visited(held, "ten", 3), visited(held, "ten", 3), visited(held, "ten", -1), visited(held, "ten", 0.5), visited(held, "T", 1)], [true, true, false, false, false, false])
  assert.deepEqual(howFar(held, "ten", 9), { seen: 2, next: 4 })
  assert.deepEqual(howFar(held, "ten", 4), { seen: 2, next: -1 })
  assert.deepEqual(howFar(held, "ten", 2), { seen: 1, next: 1 }, "the course has become shorter")
  assert.deepEqual(howFar(held, "other", 9), { seen: 0, next: 0 })
})

test("what was kept before, the seeds of solved exercises, is taken over and returns tomorrow", () => {
  const held = nothing()
  migrate(held, '{"size": [3, 4], "odds": [1], "__proto__": [1], "bad id": [1], "spread": "x"}', DAY)
  assert.deepEqual([...held.exercises.keys()], ["size", "odds"])
  assert.deepEqual(held.exercises.get("size").seeds, [3, 4])
  assert.deepEqual(titles(held, DAY), [])
  assert.deepEqual(titles(held, DAY + 1), ["Odds", "Bytes"])
  const before = written(held)
  migrate(held, '{"size": [3, 4]}', DAY)
  migrate(held, "{", DAY)
  assert.equal(written(held), before)
})

const ITEM = { right: 1, wrong: 0, day: DAY, step: 0, due: DAY + 1, missed: false, seeds: [1], last: 1 }

test("what makes no sense in the store is left out, and what does is kept", () => {
  for (const text of ["", "{", "null", "[]", "7", '"x"', '{"exercises": 3, "guesses": [], "views": {}, "scenes": null}', '{"views": [7, "<b>", "a/b/c"]}', '{"scenes": {"a": [-1], "b": "x", "c": [0.5]}}']) {
    assert.deepEqual(plain(read(text, DAY)), plain(nothing()), text)
  }
  const bad = [{ right: -1 }, { right: "1" }, { step: 5 }, { missed: 1 }, { seeds: [1.5] }, { seeds: "1" }, { seeds: [10_000] }, { last: "1" }, { day: 1e9 }, { due: null }]
  for (const change of bad) assert.equal(read(JSON.stringify({ exercises: { size: { ...ITEM, ...change } } }), DAY).exercises.size, 0, JSON.stringify(change))
  assert.deepEqual(plain(read(JSON.stringify({ exercises: { size: ITEM, "<b>": ITEM, "": ITEM, ["a".repeat(50)]: ITEM } }), DAY)).exercises, { size: ITEM })
  const ahead = read(JSON.stringify({ exercises: { size: { ...ITEM, day: DAY + 9, due: DAY + 900 } } }), DAY).exercises.get("size")
  assert.deepEqual([ahead.day, ahead.due], [DAY, DAY + 21], "a clock that was wrong hides no question for years")
})

test("the store is bounded, whatever is noted: the oldest goes", () => {
  const held = nothing()
  for (let i = 0; i < 2000; i++) {
    right(held, `task-${i}`, DAY)
    answered(held, "guesses", `guess-${i}`, { right: true }, DAY)
    seen(held, `page/view-${i}`)
    for (const at of [0, 1, 500]) visited(held, `course-${i}`, at)
    right(held, "size", DAY, i)
  }
  assert.deepEqual([held.exercises.size, held.guesses.size, held.views.size, held.scenes.size], [300, 150, 400, 60])
  assert.ok(held.exercises.has("task-1999") && !held.exercises.has("task-0") && held.views.has("page/view-1999"))
  assert.deepEqual(held.exercises.get("size").seeds, [...Array(50).keys()].map((i) => i + 1950))
  assert.ok(fileOf(held, {}).length < MOST_FILE, "what is exported can be imported")
  assert.deepEqual(plain(read(written(held), DAY)), plain(held))
})

function some() {
  const held = nothing()
  right(held, "size", DAY - 1, 3)
  wrong(held, "odds", DAY)
  answered(held, "guesses", "width", { right: true }, DAY)
  seen(held, "attention/heads")
  visited(held, "ten", 2)
  return held
}

test("a file brings back what it was made of", () => {
  const file = fileRead(fileOf(some(), { settings: "off" }), DAY, LIMITS)
  assert.deepEqual(plain(file.progress), plain(some()))
  assert.deepEqual(file.shelves, { settings: "off" })
})

test("a file that is not whole, or no file of ours, is refused with a reason", () => {
  const good = JSON.parse(fileOf(some(), {}))
  const changed = (change) => JSON.stringify({ ...good, ...change }), within = (change) => changed({ progress: { ...good.progress, ...change } })
  const refused = [
    ["", /no progress/], ["[]", /no progress/], ["{}", /no progress/], [`${"[".repeat(9000)}`, /no progress/], [changed({ format: "x" }), /no progress/],
    [changed({ version: 2 }), /another version/], [changed({ version: "1" }), /another version/], [changed({ more: 1 }), /list of parts/],
    [changed({ progress: 7 }), /progress cannot/], [changed({ progress: {} }), /exercises cannot/], [within({ views: ["<img>"] }), /views cannot/],
    [within({ views: Array(401).fill("a/b") }), /views cannot/], [within({ guesses: { "../x": ITEM } }), /guesses cannot/], [within({ exercises: { size: { ...ITEM, seeds: Array(101).fill(1) } } }), /exercises cannot/],
    [within({ scenes: { ten: [200] } }), /scenes cannot/], [within({ exercises: Object.fromEntries([...Array(301).keys()].map((i) => [`t-${i}`, ITEM])) }), /exercises cannot/],
    [changed({ shelves: { settings: 7 } }), /settings cannot/], [changed({ shelves: { settings: "longer" } }), /settings cannot/], [changed({ shelves: null }), /list of parts/],
    [" ".repeat(MOST_FILE + 1), /too large/],
  ]
  for (const [text, reason] of refused) assert.throws(() => fileRead(text, DAY, LIMITS), (error) => error instanceof Refused && reason.test(error.message), text.slice(0, 80))
  assert.deepEqual(fileRead(changed({ shelves: { foreign: "x", __proto__: "y" } }), DAY, LIMITS).shelves, {}, "of a shelf that is not here nothing is taken")
})

test("together nothing is lost, the later answer says when it returns, and twice is as once", () => {
  const mine = some(), theirs = nothing()
  right(theirs, "odds", DAY - 4, 1)
  wrong(theirs, "size", DAY, 8)
  seen(theirs, "tokens/bpe")
  visited(theirs, "ten", 4)
  const both = merged(mine, theirs)
  assert.deepEqual([both.exercises.get("size").due, both.exercises.get("size").missed, both.exercises.get("size").seeds], [DAY + 1, true, [3]])
  assert.deepEqual([both.exercises.get("odds").missed, both.exercises.get("odds").seeds, both.exercises.get("odds").right], [true, [1], 1])
  assert.deepEqual([[...both.views].sort(), [...both.scenes.get("ten")].sort()], [["attention/heads", "tokens/bpe"], [2, 4]])
  assert.deepEqual(plain(merged(both, theirs)), plain(both))
  assert.deepEqual(plain(merged(nothing(), mine)), plain(mine))
})

test("the words count one, several and none", () => {
  assert.deepEqual([1, 2, 3, 8].map(heading), ["From last time: one question", "From last time: two questions", "From last time: three questions", "From last time: three questions of 8"])
  assert.equal(AT_ONCE, 3)
  assert.equal(ledger(some(), 77), "Noted in this browser only: 1 of 77 exercises solved, 1 of 1 guess right, 1 view seen.")
  assert.equal(ledger(nothing(), 77), "Noted in this browser only: 0 of 77 exercises solved, 0 views seen.")
  assert.deepEqual([upcoming(null, DAY), upcoming(DAY + 1, DAY), upcoming(DAY + 3, DAY)], ["", "The next question returns tomorrow.", "The next question returns in 3 days."])
})

// The store --------------------------------------------------------------------------------------------

const SHELF = "glassformer-progress"

/** @param {boolean} [broken] */
function browser(broken = false) {
  const shelf = () => {
    const kept = new Map(), fail = () => { if (broken) throw new Error("blocked") }
    return { kept, getItem: (name) => (fail(), kept.get(name) ?? null), setItem: (name, value) => (fail(), kept.set(name, value)), removeItem: (name) => (fail(), kept.delete(name)) }
  }
  const page = new EventTarget()
  Object.assign(globalThis, { localStorage: shelf(), sessionStorage: shelf(), document: new EventTarget(), addEventListener: page.addEventListener.bind(page) })
  return { kept: globalThis.localStorage.kept, page }
}
const store = await import("../../ui/assets/shared/progress_store.js")
beforeEach(() => { browser(); store.forget() })

test("another tab's notes are read before one's own are written", () => {
  const { kept } = browser()
  store.note((held) => seen(held, "attention/heads"))
  const other = read(kept.get(SHELF), store.today())
  right(other, "size", store.today(), 3)
  kept.set(SHELF, written(other)) // another tab writes
  store.note((held) => seen(held, "tokens/bpe"))
  assert.deepEqual([[...store.progress().views], [...store.progress().exercises.keys()]], [["attention/heads", "tokens/bpe"], ["size"]])
  kept.delete(SHELF) // and forgets
  assert.ok(store.empty())
})

test("who watches hears of every change, also by another tab, and of nothing else", () => {
  const { page } = browser(), ended = new AbortController()
  let heard = 0
  store.watch(() => heard++, ended.signal)
  store.note((held) => seen(held, "attention/heads"))
  store.note((held) => seen(held, "attention/heads")) // nothing new
  const storage = (key) => page.dispatchEvent(Object.assign(new Event("storage"), { key }))
  storage(SHELF)
  storage("another")
  storage(null) // all was cleared
  assert.equal(heard, 3)
  ended.abort()
  storage(SHELF)
  assert.equal(heard, 3)
})

test("what a version before this one kept is taken over once", () => {
  const { kept } = browser()
  kept.set("glassformer-solved", '{"size": [3]}')
  assert.deepEqual([...store.progress().exercises.keys()], ["size"])
  assert.deepEqual([...kept.keys()], [SHELF])
})

test("a browser that keeps nothing has it while the page stands", () => {
  browser(true)
  store.note((held) => seen(held, "attention/heads"))
  assert.deepEqual([...store.progress().views], ["attention/heads"])
  store.forget()
  assert.ok(store.empty())
})

test("forgotten is everything, and a file brings it back beside what is here", () => {
  const { kept } = browser()
  kept.set("glassformer-guesses", "off")
  globalThis.sessionStorage.kept.set("glassformer-guess-later", "mask")
  store.note((held) => seen(held, "attention/heads"))
  const file = store.exported(), heard = []
  for (const name of ["gf-progress", "gf-guesses"]) globalThis.document.addEventListener(name, () => heard.push(name))
  store.forget()
  assert.deepEqual([kept.size, globalThis.sessionStorage.kept.size, heard], [0, 0, ["gf-progress", "gf-guesses"]])
  store.note((held) => seen(held, "tokens/bpe"))
  store.imported(file)
  assert.deepEqual([[...store.progress().views].sort(), kept.get("glassformer-guesses")], [["attention/heads", "tokens/bpe"], "off"])
  kept.set("glassformer-guesses", "mine")
  store.imported(file)
  assert.equal(kept.get("glassformer-guesses"), "mine", "what is here stays")
  assert.throws(() => store.imported("{}"), Refused)
})

test("a day is the visitor's own, from midnight to midnight", () => {
  const morning = store.today(new Date(2026, 10, 29, 0, 0, 1))
  assert.equal(store.today(new Date(2026, 10, 29, 23, 59)), morning)
  assert.equal(store.today(new Date(2026, 10, 30, 0, 0)), morning + 1)
  assert.equal(store.today(new Date(2027, 2, 29)) - store.today(new Date(2027, 2, 27)), 2, "over a change of the clocks")
})

test("every shelf of a browser is exported and forgotten", () => {
  const names = (/** @type {string} */ path) => readFileSync(path, "utf-8").match(/(?<=")glassformer-[a-z-]+(?=")/g) ?? []
  const covered = new Set(names("ui/assets/shared/progress_store.js")), files = ["ui/assets", "pages"].flatMap((folder) => readdirSync(folder, { recursive: true }).map((file) => `${folder}/${file}`).filter((file) => file.endsWith(".js")))
  assert.ok(files.length > 50 && covered.size > 3)
  for (const file of files) for (const name of names(file)) assert.ok(covered.has(name), `${name} of ${file} is not in FURTHER`)
})

test("a guess that somebody goes to is expected once", () => {
  browser()
  Object.assign(globalThis, { location: new URL("http://here/exercises?course=ten&scene=1"), history: { pushState: (_, __, url) => { globalThis.location = new URL(url) } }, dispatchEvent: () => true, PopStateEvent: Event })
  store.follow("./attention?text=a", "mask")
  assert.deepEqual([store.wants("width"), store.wants("mask"), store.wants("mask")], [false, true, false])
  assert.equal(globalThis.location.search, "?text=a&course=ten&scene=1", "a course goes along")
})
