// @ts-check
// A film as a page that runs alone: its frames as data, what plays them, and Plotly's library where a frame needs it. No page is touched.

import { player } from "./film_player.js"

/**
 * @typedef {import("./film_player.js").Film} Film
 * @typedef {{ background: string, text: string, panel: string, line: string, accent: string, font: string }} Look
 */

const escaped = (text) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`)

/** Nothing in a script may look like its end. @param {string} code */
const inScript = (code) => code.replace(/<(?=\/script|!--)/gi, "\\x3c")

/**
 * @param {Film} film
 * @param {Look} look
 * @param {string} library Plotly's, or nothing where no frame needs it
 * @returns {string} HTML
 */
export function filmPage(film, look, library) {
  const plain = (value) => value.replace(/[;{}<>]/g, "")
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escaped(film.title)}</title>
<style>
body { margin: 16px; background: ${plain(look.background)}; color: ${plain(look.text)}; font-family: ${plain(look.font)}; }
main { max-width: ${Math.max(film.width, 640)}px; margin: 0 auto; }
h1 { font-size: 20px; margin: 0 0 4px; }
.quiet { font-size: 13px; opacity: .8; margin: 0 0 12px; }
.line { display: flex; gap: 12px; align-items: center; position: sticky; top: 0; padding: 4px 0; background: ${plain(look.background)}; z-index: 1; flex-wrap: wrap; }
button { width: 40px; height: 40px; border-radius: 50%; border: 1px solid ${plain(look.line)}; background: ${plain(look.panel)}; color: inherit; font-size: 14px; cursor: pointer; }
input { flex: 1 1 160px; accent-color: ${plain(look.accent)}; }
output { font-size: 14px; font-variant-numeric: tabular-nums; min-width: 15em; }
#room { overflow: hidden; margin: 8px 0; } #stage { position: relative; width: ${film.width}px; height: ${film.height}px; transform-origin: 0 0; }
#answer { font-size: 18px; line-height: 1.4; border-left: 4px solid ${plain(look.accent)}; padding-left: 12px; min-height: 4.2em; margin: 8px 0 0; }
</style></head>
<body><main><h1>${escaped(film.title)}</h1><p class="quiet">${escaped(film.about)}</p>
<div class="line"><button id="play" type="button" aria-label="Play">▶</button><input id="slider" type="range" min="0" step="1" value="0" aria-label="Training time"><output id="said"></output></div>
<div id="room"><div id="stage"></div></div><p id="answer"></p></main>
<script type="application/json" id="film">${JSON.stringify(film).replaceAll("<", "\\u003c")}</script>
${library ? `<script>${inScript(library)}</script>\n` : ""}<script>(${inScript(String(player))})()</script>
</body></html>
`
}
