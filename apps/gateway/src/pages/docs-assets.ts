import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { DOCS_SCRIPT } from "./docs-script.ts";

export type Asset = { readonly name: string; readonly plain: Buffer; readonly zipped: Buffer };

/**
 * The scripts of the reference page, in execution order. Each name contains a hash of the content, so the content of a
 * name never changes.
 */
export type DocsAssets = readonly Asset[];

/**
 * Returns a function that loads the scripts on its first call. The viewer is a single self-contained file of an npm
 * package.
 */
export function docsAssets(): () => Promise<DocsAssets> {
  const viewer = createRequire(import.meta.url).resolve("rapidoc");
  let loading: Promise<DocsAssets> | undefined;
  return () => {
    loading ??= Promise.all([
      asset("docs", Buffer.from(DOCS_SCRIPT)),
      readFile(viewer).then((content) => asset("viewer", content)),
    ]);
    loading.catch(() => (loading = undefined));
    return loading;
  };
}

async function asset(name: string, plain: Buffer): Promise<Asset> {
  const hash = createHash("sha256").update(plain).digest("hex").slice(0, 16);
  return { name: `${name}-${hash}.js`, plain, zipped: await promisify(gzip)(plain, { level: 9 }) };
}
