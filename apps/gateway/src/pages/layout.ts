import { Markup, markup } from "./markup.ts";

const STYLE = new Markup(`<style>
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --good: #1a7f37; --bad: light-dark(#cf222e, #ff7b72); --busy: #9a6700; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0 0 .3rem; } h2 { font-size: 1rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); }
.meta { color: #888; } .state { font-weight: 600; } .SUCCEEDED, .open { color: var(--good); } .FAILED, .ERROR, .CANCELLED { color: var(--bad); }
.QUEUED, .PENDING, .CLAIMED, .INPROGRESS, .BLOCKED { color: var(--busy); }
pre { background: var(--soft); padding: .6rem .8rem; border-radius: 6px; overflow-x: auto; font-size: 13px; line-height: 1.4; }
.message { white-space: pre-wrap; margin: .4rem 0; } .role { color: #888; font-size: .8rem; text-transform: uppercase; }
table { border-collapse: collapse; } td { padding: .1rem 1rem .1rem 0; vertical-align: top; }
.add { color: var(--good); } .del { color: var(--bad); } .hunk { color: #888; }
.nested { border-left: 3px solid var(--line); padding-left: 1rem; margin: .6rem 0; }
input { font: inherit; padding: .3rem .5rem; width: 24rem; max-width: 100%; } button { font: inherit; padding: .3rem .8rem; }
</style>`);

/** Returns a page without scripts and without resources from other servers. */
export const page = (title: string, body: Markup): string =>
  `<!doctype html>${
    markup`<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${title} · Millwright</title>${STYLE}</head><body><main>${body}</main></body></html>`.text
  }`;
