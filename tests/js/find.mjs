// What the search finds, for tests/ui/test_search.py: entries and queries come as JSON, the places of the results go.
import process from "node:process"

import { finder } from "../../ui/assets/search_find.js"

let text = ""
for await (const part of process.stdin.setEncoding("utf-8")) text += part
const { entries, most, queries } = JSON.parse(text)
const find = finder(entries, most)
process.stdout.write(JSON.stringify(queries.map(([query, kind]) => find(query, kind).map((one) => entries.indexOf(one)))))
