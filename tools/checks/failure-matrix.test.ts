import { globSync } from "node:fs";
import { expect, test } from "@jest/globals";
import { readJoinedCalls } from "./joined-calls.ts";

/** The failures of the matrix. Names of the tests that cover them start with these texts. */
const LINES = [
  "Worker dies before Accept",
  "Worker dies in SETUP",
  "Worker dies while RUNNING",
  "Worker frozen, then wakes",
  "Network split or control-plane outage",
  "Outage 30 s – 10 min",
  "Control plane restarts",
  "Harness crashes",
  "OOM kill of sandbox",
  "Model 429/5xx",
  "Setup command fails",
  "Cancel while QUEUED",
  "Cancel while PENDING",
  "Cancel while running, worker silent",
  "Cancel races completion",
  "Child created while its tree is cancelled",
  "Follow-up races completion",
  "Event append lost answer",
  "Complete lost answer",
  "Artifact upload cut",
  "Two workers with one worker_id",
  "Old worker version",
  "Worker disk full",
  "Quotas",
] as const;

test("every line of the failure matrix is a test by its name", () => {
  const root = new URL("../..", import.meta.url).pathname;
  const texts = globSync("apps/*/{src,test}/**/*.test.ts", { cwd: root }).map((path) => readJoinedCalls(root + path));
  const isTested = (line: string) =>
    texts.some((text) => ['("', "(`", '"bwrap","', '"bwrap", "'].some((before) => text.includes(before + line)));
  expect(LINES.filter((line) => !isTested(line))).toEqual([]);
});
