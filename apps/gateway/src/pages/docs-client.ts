/** Starts the viewer, with colours by the reader's preference and this server as the target of trial requests. */
export const DOCS_SCRIPT = `const dark = matchMedia("(prefers-color-scheme: dark)");
const paint = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
paint();
dark.addEventListener("change", paint);
const show = (document) =>
  SwaggerUIBundle({
    spec: { ...document, servers: [{ url: location.origin }] },
    dom_id: "#reference",
    deepLinking: true,
    filter: true,
    validatorUrl: "none",
    defaultModelsExpandDepth: 0,
  });
void fetch("/api/v1/openapi.json").then((response) => response.json()).then(show);
`;

/** The page's own header replaces the viewer's title. The only server is this one, so the choice of servers is hidden. */
export const DOCS_STYLE = `:root { color-scheme: light dark; }
body { margin: 0; font: 15px/1.5 system-ui, sans-serif; }
header { box-sizing: border-box; max-width: 1460px; margin: 0 auto; padding: 1.5rem 20px 0; line-height: 1.55; }
header h1 { margin: 0; font-size: 1.6rem; }
header h1 a { color: inherit; text-decoration: none; }
header p { max-width: 46rem; }
header pre { max-width: 46rem; overflow-x: auto; padding: .7rem .9rem; border-radius: 6px; background: #8882; font: 13px/1.5 ui-monospace, monospace; }
header code { font-family: ui-monospace, monospace; font-size: .92em; }
.dark-mode body { color: #e4e6e6; }
.swagger-ui .info { margin: 1rem 0; }
.swagger-ui .info hgroup, .swagger-ui .scheme-container .servers-title, .swagger-ui .scheme-container .servers { display: none; }
.swagger-ui .scheme-container { margin: 0; padding: 0; box-shadow: none; background: none; }
.swagger-ui .filter .operation-filter-input { margin: 1rem 0 0; }
`;
