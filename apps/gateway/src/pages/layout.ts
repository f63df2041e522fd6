import { Markup, markup } from "./markup.ts";

const STYLE = new Markup(`<style>
:root { color-scheme: light dark; background: light-dark(#fff, #15171a); color: light-dark(#1c1e21, #e6e8eb); }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0 0 .3rem; } .problem { color: light-dark(#cf222e, #ff7b72); }
a { color: light-dark(#0b57d0, #9e9eff); } button { font: inherit; padding: .3rem .8rem; }
</style>`);

/** Returns a page without scripts and without resources from other servers. */
export const page = (title: string, body: Markup): string =>
  `<!doctype html>${
    markup`<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${title} · Millwright</title>${STYLE}</head><body><main>${body}</main></body></html>`.text
  }`;
