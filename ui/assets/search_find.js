// @ts-check
// Finding what a person means among the entries of ui/search/entries.py: MiniSearch, with the words and the order of this app.

import MiniSearch from "./vendor/minisearch.js"

/**
 * A view, term, exercise, notebook, course or scene. `names` are what it is called, `about` what else is asked or shown there, `text`
 * what is written about it; `weight` multiplies its score, `address` lies below the app's root.
 * @typedef {{ kind: string, title: string, detail: string, address: string, names: string[], about: string[], text: string, weight: number }} Entry
 */

const MOST = 12, MOST_QUERY = 120 // results, and letters that are read of a query
const FIELDS = { names: 10, title: 7, about: 6, text: 1 }, SLIP = { fuzzy: 0.45, prefix: 0.5 }
const PHRASE = 2 // times the score, where the query is a title, a name or a question as it stands
const SHORTEST = 4 // letters of a word that may be misspelt
const SIGNS = Object.entries({ "√": " sqrt ", "×": " x ", "÷": " divide ", "β": " beta ", "σ": " sigma " })
// Words of a question that name no topic. A query of nothing else is read as it is.
const COMMON = new Set(("a an and are at be by can could did do does for from get give has have how i in into is it its kind many me much my "
  + "of on one or show shows so than that the their them there these they this to use used was we were what what's when where which who why "
  + "will with work works would you your").split(" "))

/** The words of a text, in small letters and without accents. @param {string} text @returns {string[]} */
export function words(text) {
  for (const [sign, written] of SIGNS) text = text.replaceAll(sign, written)
  const plain = text.toLowerCase().replaceAll("’", "'").normalize("NFKD").replace(/\p{M}/gu, "")
  return plain.match(/[a-z0-9]+(?:'[a-z]+)?/g) ?? []
}

/** What is left of a word without its ending. @param {string} word @returns {string} */
export function stem(word) {
  for (const ending of ["ings", "ing", "edly", "ed", "es", "s", "e"]) {
    const left = word.slice(0, -ending.length)
    if (!word.endsWith(ending) || left.length < 4 || (ending.length < 3 && ending.endsWith("s") && "siu".includes(left[left.length - 1]))) continue
    return word.endsWith("sses") ? stem(word.slice(0, -2)) : left
  }
  return word
}

/** Whether a word of the index is what a misspelt one means: one letter more or less, two the other way round, or one of eight another. */
function meant(/** @type {string} */ written, /** @type {string} */ word) {
  if (written[0] !== word[0]) return false
  const [short, long] = written.length < word.length ? [written, word] : [word, written]
  let at = 0
  while (at < short.length && short[at] === long[at]) at++
  if (short.length < long.length) return short.slice(at) === long.slice(at + 1)
  const swapped = short[at] === long[at + 1] && short[at + 1] === long[at]
  return (swapped && short.slice(at + 2) === long.slice(at + 2)) || (short.length > 7 && short.slice(at + 1) === long.slice(at + 1))
}

/**
 * A search over entries: the best for a query, best first, so many of each kind as `most` says; of a single kind where that is given.
 * @param {Entry[]} entries
 * @param {Record<string, number>} most
 * @returns {(query: string, kind?: string) => Entry[]}
 */
export function finder(entries, most) {
  const index = new MiniSearch({
    fields: Object.keys(FIELDS), tokenize: words, processTerm: stem,
    extractField: (/** @type {any} */ entry, /** @type {string} */ field) => (Array.isArray(entry[field]) ? entry[field].join(" ") : String(entry[field] ?? "")),
  })
  index.addAll(entries.map((entry, id) => ({ ...entry, id })))
  const called = entries.map((entry) => new Set([entry.title, ...entry.names, ...entry.about].map((name) => words(name).join(" "))))
  return (query, kind = "") => {
    const all = words(query.slice(0, MOST_QUERY)), named = all.filter((word) => !COMMON.has(word)), topic = named.length ? named : all
    const many = new Set(topic.map(stem)).size, plain = all.join(" ")
    const found = index.search(topic.join(" "), {
      boost: FIELDS, weights: SLIP, prefix: (/** @type {string} */ word) => word.length > 1,
      fuzzy: (/** @type {string} */ word) => (word.length >= SHORTEST ? 2 : false),
      bm25: { k: 0.4, b: 0, d: 0.3 }, boostDocument: (/** @type {number} */ id) => entries[id].weight,
    }).filter((/** @type {any} */ one) => one.terms.some((/** @type {string} */ word) => topic.some((each) => word.startsWith(stem(each)) || meant(stem(each), word))))
    const scored = found.map(({ id, score, queryTerms }) => ({ id, score: score * (new Set(queryTerms).size / many) ** 2 * (called[id].has(plain) ? PHRASE : 1) }))
    const order = scored.sort((a, b) => b.score - a.score || a.id - b.id).map(({ id }) => entries[id])
    return kind ? order.filter((one) => one.kind === kind) : limited(order, most)
  }
}

function limited(/** @type {Entry[]} */ order, /** @type {Record<string, number>} */ most) {
  const seen = new Set(), shown = /** @type {Record<string, number>} */ ({}), result = []
  for (const one of order) {
    const name = `${one.kind} ${one.title}`
    if (seen.has(name)) continue
    seen.add(name)
    shown[one.kind] = (shown[one.kind] ?? 0) + 1
    if (shown[one.kind] <= (most[one.kind] ?? MOST)) result.push(one)
  }
  return result.slice(0, MOST)
}
