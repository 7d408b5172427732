// @ts-check
// Tables as text: RFC 4180's quotes, a line feed after each row. What is missing is an empty cell.

/** @param {unknown} value */
export function cell(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return ""
  const text = String(value)
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/**
 * The rows as CSV, the first of them the head; a text is one already.
 * @param {string | unknown[][]} rows
 */
export function csv(rows) {
  return typeof rows === "string" ? rows : rows.map((row) => row.map(cell).join(",") + "\n").join("")
}
