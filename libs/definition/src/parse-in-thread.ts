import { Worker } from "node:worker_threads";
import { Problems, START, type Place } from "./diagnostics.ts";
import { locate, type Spot } from "./locate.ts";
import { parseDefinition, type ParsedDefinition } from "./parse-definition.ts";
import type { TreeFile } from "./tree.ts";

/** The input of the thread in parser-thread.ts: with spots it returns their positions, else the definition. */
export type ThreadInput = { readonly files: readonly TreeFile[]; readonly spots?: readonly Spot[] };

/** YAML is parsed at about 1 MB/s; up to this size it is parsed on the caller's thread. */
const IN_PLACE_BYTES_MAX = 128 * 1024;
const TIMEOUT_MS = 60_000;

/**
 * As `parseDefinition`, but parses a large tree in a worker thread, so that this one continues to serve. A tree that
 * takes longer than a minute exceeds its limits.
 */
export const parseDefinitionInThread = (files: readonly TreeFile[]): Promise<ParsedDefinition> =>
  inThread({ files }, () => parseDefinition(files), tooSlow);

/** As `locate`, in a worker thread; spots that take too long have no position. */
export function locateInThread(files: readonly TreeFile[], spots: readonly Spot[]): Promise<Place[]> {
  const paths = new Set(spots.map(({ path }) => path));
  const read = files.filter(({ path }) => paths.has(path));
  return inThread(
    { files: read, spots },
    () => locate(read, spots),
    () => spots.map(() => START),
  );
}

async function inThread<T>(input: ThreadInput, inPlace: () => T, tooLate: () => T): Promise<T> {
  const bytes = input.files.reduce((sum, { content }) => sum + content.length, 0);
  if (bytes <= IN_PLACE_BYTES_MAX) return inPlace();
  const worker = new Worker(
    new URL(import.meta.url.endsWith(".ts") ? "./parser-thread.ts" : "./parser-thread.js", import.meta.url),
    { workerData: input },
  );
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<T>((resolve, reject) => {
      worker.once("message", resolve).once("error", reject);
      timer = setTimeout(() => resolve(tooLate()), TIMEOUT_MS);
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
