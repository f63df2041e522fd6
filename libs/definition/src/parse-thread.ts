import { parentPort, workerData } from "node:worker_threads";
import { parseDefinition } from "./parse-definition.ts";
import type { TreeFile } from "./tree.ts";

/** The thread of parse-aside.ts: parses the tree it was started with, and answers. */
parentPort?.postMessage(parseDefinition(workerData as TreeFile[]));
