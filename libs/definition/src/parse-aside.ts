import { Worker } from "node:worker_threads";
import { Problems, START } from "./diagnostics.ts";
import { parseDefinition, type ParsedDefinition } from "./parse-definition.ts";
import type { TreeFile } from "./tree.ts";

/** YAML is read at about 1 MB/s: up to this size a caller may wait on its own thread. */
const IN_PLACE_BYTES_MAX = 128 * 1024;
const TIMEOUT_MS = 60_000;

/**
 * As `parseDefinition`, but a large tree is parsed by a thread of its own, so that this one goes on serving. A tree that takes
 * longer than a minute is beyond its bounds.
 */
export async function parseDefinitionAside(files: readonly TreeFile[]): Promise<ParsedDefinition> {
  const bytes = files.reduce((sum, { content }) => sum + content.length, 0);
  if (bytes <= IN_PLACE_BYTES_MAX) return parseDefinition(files);
  const worker = new Worker(new URL(import.meta.url.endsWith(".ts") ? "./parse-thread.ts" : "./parse-thread.js", import.meta.url), { workerData: files });
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<ParsedDefinition>((resolve, reject) => {
      worker.once("message", resolve).once("error", reject);
      timer = setTimeout(() => resolve(tooSlow()), TIMEOUT_MS);
    });
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}

function tooSlow(): ParsedDefinition {
  const problems = new Problems();
  problems.error("factory.yaml", START, "FF_LIMIT_EXCEEDED", "The definition takes too long to read.");
  return { diagnostics: problems.sorted() };
}
