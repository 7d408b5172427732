// @ts-check
// Numbers as they are sent, and as they are said. No page is needed.

/**
 * The bytes of a text in base64.
 * @param {string} text
 */
export const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0))

/**
 * The numbers of a text in base64, as a typed array of the kind that the server packed.
 * @template Array
 * @param {string} text
 * @param {new (buffer: ArrayBuffer) => Array} Kind
 * @returns {Array}
 */
export const numbers = (text, Kind) => new Kind(bytes(text).buffer)

/** 1234567 -> "1,234,567". @param {number} n */
export const whole = (n) => n.toLocaleString("en")

/** "1 token", "2 tokens". @param {number} n @param {string} one @param {string} [many] */
export const counted = (n, one, many = `${one}s`) => `${whole(n)} ${n === 1 ? one : many}`

/**
 * A share as it is read beside others: whole from 10% on, "<0.1%" for what is not nothing.
 * @param {number} x
 */
export const percent = (x) => (x >= 0.0995 ? `${(100 * x).toFixed(0)}%` : x >= 0.00095 ? `${(100 * x).toFixed(1)}%` : x > 0 ? "<0.1%" : "0%")

/**
 * A probability with one decimal; what is nearly all or nearly nothing is not said to be all or nothing.
 * @param {number} p
 */
export const chance = (p) => (p >= 0.9995 && p < 1 ? ">99.9%" : p > 0 && p < 0.001 ? "<0.1%" : `${(100 * p).toFixed(1)}%`)

const scaled = (units) => (n) => {
  for (const [size, unit] of units) if (n >= size) return [n / size, unit]
  return null
}
const decimal = scaled([[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
const binary = scaled([[2 ** 30, "GB"], [2 ** 20, "MB"], [2 ** 10, "KB"]])

/** 1500 -> "1.5 kFLOP". @param {number} n */
export function flop(n) {
  const found = decimal(n)
  return found ? `${Number(found[0].toPrecision(3))} ${found[1]}FLOP` : `${n} FLOP`
}

/** 1.19e-7 -> "1.2 × 10⁻⁷". @param {number} x @param {number} [digits] */
export function scientific(x, digits = 1) {
  if (x === 0 || !Number.isFinite(x)) return String(x)
  const [mantissa, power] = x.toExponential(digits).split("e")
  return `${mantissa.replace("-", "−")} × 10${[...String(Number(power))].map((sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]).join("")}`
}

/** 1536 -> "1.5 KB", in powers of 1024. @param {number} n */
export function memory(n) {
  const found = binary(n)
  return found ? `${Number(found[0].toPrecision(3))} ${found[1]}` : `${n} B`
}
