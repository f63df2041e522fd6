import { Markup, markup } from "./markup.ts";

/** The icon of the console. It is part of the page, because the files of the console may not be built yet. */
const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#1f7a55"/><path d="M8 23V9l8 8 8-8v14" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round" stroke-linejoin="round"/></svg>';
const ICON_URL = `data:image/svg+xml,${encodeURIComponent(ICON)}`;

/** Colours and measures of the card on the console's sign-in page. */
const STYLE = new Markup(`<style>
:root { color-scheme: light dark; background: light-dark(#f6f7f8, #0c0f10); color: light-dark(#1c2226, #dfe4e7); }
* { box-sizing: border-box; }
html, body { height: 100%; }
body { display: grid; place-items: center; margin: 0; padding: 24px; font: 13.5px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { display: grid; gap: 16px; width: min(400px, 100%); padding: 28px; border: 1px solid light-dark(#e3e6e8, #282e33); border-radius: 12px; background: light-dark(#fff, #181c1f); }
.brand { display: flex; align-items: center; gap: 8px; font-size: 15px; font-weight: 650; }
h1 { margin: 0; font-size: 17px; font-weight: 600; line-height: 1.35; overflow-wrap: anywhere; } p, form { margin: 0; }
.problem { padding: 8px 12px; border-radius: 6px; color: light-dark(#b3212d, #ff8087); background: light-dark(#fdeaeb, #351a1d); }
a { color: light-dark(#176b49, #5cc794); text-decoration: none; } a:hover { text-decoration: underline; }
button { width: 100%; height: 30px; border: 0; border-radius: 6px; background: light-dark(#176b49, #1f7a55); color: #fff; font: inherit; font-weight: 500; cursor: pointer; }
:focus-visible { outline: 2px solid light-dark(#2b7de9, #6cacff); outline-offset: 1px; }
</style>`);

/** Returns a page without scripts and without resources from other servers: a card in the style of the console. */
export const page = (title: string, body: Markup): string =>
  `<!doctype html>${
    markup`<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Millwright</title><link rel="icon" type="image/svg+xml" href="${ICON_URL}">${STYLE}</head>
<body><main><span class="brand"><img src="${ICON_URL}" width="20" height="20" alt="">Millwright</span>${body}</main></body></html>`
      .text
  }`;
