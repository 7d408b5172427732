// @ts-check
// Canvases, sharp on every screen.

/**
 * A clean brush for a canvas of these CSS pixels; `ratio` are the screen's pixels for each of them.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 * @param {number} [ratio]
 */
export function brushOf(canvas, width, height, ratio = window.devicePixelRatio || 1) {
  sized(canvas, Math.round(width * ratio), Math.round(height * ratio))
  canvas.style.height = `${height}px`
  const brush = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"))
  brush.setTransform(ratio, 0, 0, ratio, 0, 0)
  brush.clearRect(0, 0, width, height)
  return brush
}

/**
 * Draws cells of one pixel each, whose colours [r, g, b] `colour` knows.
 * @param {HTMLCanvasElement} canvas
 * @param {number} columns
 * @param {number} rows
 * @param {(x: number, y: number) => number[]} colour
 */
export function raster(canvas, columns, rows, colour) {
  sized(canvas, columns, rows)
  const brush = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")), image = brush.createImageData(columns, rows)
  for (let y = 0, at = 0; y < rows; y++) for (let x = 0; x < columns; x++, at += 4) {
    const [r, g, b] = colour(x, y)
    image.data[at] = r
    image.data[at + 1] = g
    image.data[at + 2] = b
    image.data[at + 3] = 255
  }
  brush.putImageData(image, 0, 0)
  return canvas
}

function sized(/** @type {HTMLCanvasElement} */ canvas, /** @type {number} */ width, /** @type {number} */ height) {
  if (canvas.width !== width) canvas.width = width
  if (canvas.height !== height) canvas.height = height
}
