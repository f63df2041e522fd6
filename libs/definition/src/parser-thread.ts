import { parentPort, workerData } from "node:worker_threads";
import { locate } from "./locate.ts";
import type { Asked } from "./parse-in-thread.ts";
import { parseDefinition } from "./parse-definition.ts";

/** The thread of parse-in-thread.ts: does what it was started with, and answers. */
const { files, spots } = workerData as Asked;
parentPort?.postMessage(spots ? locate(files, spots) : parseDefinition(files));
