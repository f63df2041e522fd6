import { setTimeout as delay } from "node:timers/promises";
import { progressLine, type BenchmarkRun } from "@millwright/terminal";
import { until } from "../live-view.ts";
import type { DemoStage } from "../run-demo.ts";
import { REPETITIONS, suiteOf } from "./suite.ts";

export type Executed = {
  readonly suiteUid: string;
  readonly path: string;
  readonly run: BenchmarkRun & { readonly uid: string; readonly manifest_hash: string };
};

type Identity = { uid: string; name: string };

const FINISHED = ["completed", "failed", "cancelled"];
const POLL_MS = 500;

/** Creates the suite, launches it and shows its progress until it has finished. */
export async function executeBenchmark({ api, print }: DemoStage, factoryUid: string): Promise<Executed> {
  const agent = await until(
    async () =>
      (await api.get<{ agents: Identity[] }>("/agent/identities", { factory_uid: factoryUid })).agents.find(
        ({ name }) => name === "engineer",
      ),
    "The agent",
  );
  const suite = await api.post<{ uid: string; tasks: unknown[] }>(
    `/factory/${factoryUid}/benchmarks`,
    suiteOf(factoryUid, agent),
  );
  const runs = `/factory/${factoryUid}/benchmarks/${suite.uid}/runs`;
  const { uid } = await api.post<{ uid: string }>(runs, { repetition_count: REPETITIONS });
  print(`   ${suite.tasks.length} tasks × 2 configurations × ${REPETITIONS} repetitions\n`);
  const progress = progressTo(print);
  for (;;) {
    const run = await api.get<Executed["run"]>(`${runs}/${uid}`);
    progress(progressLine(run));
    if (FINISHED.includes(run.state)) return endLine({ suiteUid: suite.uid, path: `${runs}/${uid}`, run });
    await delay(POLL_MS);
  }
}

/**
 * Returns a function that displays a progress line. On a terminal it replaces the previous line; otherwise it prints
 * each line that differs from the previous one.
 */
function progressTo(print: (text: string) => void): (line: string) => void {
  let shown = "";
  return (line) => {
    if (line === shown) return;
    shown = line;
    if (process.stdout.isTTY) process.stdout.write(`\r\u001b[2K   ${line}`);
    else print(`   ${line}`);
  };
}

function endLine<T>(value: T): T {
  if (process.stdout.isTTY) process.stdout.write("\n");
  return value;
}
