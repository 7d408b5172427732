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
 * A share or a probability: "0%" and "100%" are exact, nearly all is not all.
 * @param {number} x
 */
export const percent = (x) =>
  x === 0 || x === 1 ? `${100 * x}%` : x < 0.0005 ? "<0.1%" : x >= 0.9995 && x < 1 ? ">99.9%" : `${(100 * x).toFixed(1)}%`

/** "-0.5" -> "−0.5". @param {string} written */
export const minus = (written) => written.replace("-", "−")

// From `least` of a unit on, what is smaller would be rounded to one of it
const scaled = (units, least) => (n) => {
  for (const [size, unit] of units) if (n / size >= least) return [three(n / size), unit]
  return null
}
const three = (x) => (x < 999.5 ? `${Number(x.toPrecision(3))}` : whole(Math.round(x)))
const decimal = scaled([[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]], 0.9995)
const binary = scaled([[2 ** 40, "TB"], [2 ** 30, "GB"], [2 ** 20, "MB"], [2 ** 10, "KB"]], 1 - 0.5 / 1024)

/** 1500 -> "1.5 kFLOP". @param {number} n */
export function flop(n) {
  const found = decimal(n)
  return found ? `${found[0]} ${found[1]}FLOP` : `${n} FLOP`
}

/** A whole number as an exponent: -12 -> "⁻¹²". @param {number} n */
export const raised = (n) => [...String(n)].map((sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]).join("")

/** 1.19e-7 -> "1.2 × 10⁻⁷". @param {number} x @param {number} [digits] */
export function scientific(x, digits = 1) {
  if (x === 0 || !Number.isFinite(x)) return String(x)
  const [mantissa, power] = x.toExponential(digits).split("e")
  return `${minus(mantissa)} × 10${raised(Number(power))}`
}

/** 1536 -> "1.5 KB", in powers of 1024. @param {number} n */
export function memory(n) {
  const found = binary(n)
  return found ? `${found[0]} ${found[1]}` : `${whole(Math.round(n))} B`
}
