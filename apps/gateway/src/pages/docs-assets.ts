import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { extname } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { DOCS_SCRIPT, DOCS_STYLE } from "./docs-client.ts";

export type Asset = {
  /** Contains a hash of the content, so the content of a name never changes. */
  readonly name: string;
  readonly contentType: string;
  readonly plain: Buffer;
  readonly zipped: Buffer;
};

/** The styles and scripts of the reference page, in the order in which the page loads them. */
export type DocsAssets = readonly Asset[];

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
};

/** Returns a function that loads the assets on its first call. The viewer is one script and one style sheet. */
export function docsAssets(): () => Promise<DocsAssets> {
  const { resolve } = createRequire(import.meta.url);
  const viewer = (file: string): Promise<Buffer> => readFile(resolve(`swagger-ui-dist/${file}`));
  let loading: Promise<DocsAssets> | undefined;
  return () => {
    loading ??= Promise.all([
      asset("viewer.css", viewer("swagger-ui.css")),
      asset("docs.css", DOCS_STYLE),
      asset("viewer.js", viewer("swagger-ui-bundle.js")),
      asset("docs.js", DOCS_SCRIPT),
    ]);
    loading.catch(() => (loading = undefined));
    return loading;
  };
}

async function asset(file: string, content: string | Promise<Buffer>): Promise<Asset> {
  const plain = Buffer.from(await content);
  const hash = createHash("sha256").update(plain).digest("hex").slice(0, 16);
  const ending = extname(file);
  return {
    name: `${file.slice(0, -ending.length)}-${hash}${ending}`,
    contentType: CONTENT_TYPES[ending]!,
    plain,
    zipped: await promisify(gzip)(plain, { level: 9 }),
  };
}
