import { parentPort, workerData } from "node:worker_threads";
import { locate } from "./locate.ts";
import type { ThreadInput } from "./parse-in-thread.ts";
import { parseDefinition } from "./parse-definition.ts";

/** The worker thread of parse-in-thread.ts: processes its input and posts the result. */
const { files, spots } = workerData as ThreadInput;
parentPort?.postMessage(spots ? locate(files, spots) : parseDefinition(files));
