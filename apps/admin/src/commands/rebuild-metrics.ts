import { setTimeout } from "node:timers/promises";
import { systemClock } from "@millwright/clock";
import { rebuildReadModels, type Rebuild } from "@millwright/metrics/compose";
import type { Admin, Command } from "../command.ts";
import { withDatabase } from "../servers.ts";

const POLL_MS = 500;

export const rebuildMetrics: Command = {
  words: "rebuild metrics",
  needsOneDatabase: true,
  args: [],
  summary: "Makes the read models of the metrics service again from runs and stored deliveries, while it serves.",
  details: [
    "Prints a hash of every endpoint's responses before and after. Run again after an interruption, it resumes.",
    "DATABASE_URL: the database of the metrics service.",
  ],
  async run({ env, print }) {
    const report = reportTo(print);
    const deps = { clock: systemClock, pause: () => setTimeout(POLL_MS), report };
    for (const line of describe(await withDatabase(env, "metrics", (url) => rebuildReadModels(deps, url)))) print(line);
  },
};

/** Prints a line whenever the progress has changed. */
function reportTo(print: Admin["print"]): Parameters<typeof rebuildReadModels>[0]["report"] {
  let last = "";
  return ({ phase, runs, deliveries, failures }) => {
    const failed = failures > 0 ? `, ${failures} failed` : "";
    const line = `replayed ${runs} runs and ${deliveries} deliveries${failed}${phase === "done" ? "" : " so far"}`;
    if (line !== last) print(line);
    last = line;
  };
}

const HASH_DIGITS = 16;

function describe({ factories, ...rebuild }: Rebuild): string[] {
  if (factories.length === 0) return [...describeRest(rebuild), "There are no facts: no run of a factory is stored."];
  const lines = factories.flatMap(({ factoryUid, changed, endpoints }) => [
    `factory ${factoryUid}: ${changed.length === 0 ? "equal" : `repaired ${changed.join(", ")}`}`,
    ...endpoints.map(({ endpoint, before, after }) => {
      const short = (hash: string): string => hash.slice(0, HASH_DIGITS);
      const hashes = `before ${before === undefined ? "none" : short(before)}, after ${short(after)}`;
      return `  ${endpoint.padEnd(15)}  ${hashes}: ${before === after ? "equal" : "changed"}`;
    }),
  ]);
  const isEqual = factories.every(({ endpoints }) => endpoints.every(({ before, after }) => before === after));
  return [
    ...lines,
    ...describeRest(rebuild),
    isEqual ? "All responses are equal." : "Responses have changed: facts were added or repaired.",
  ];
}

function* describeRest({ failures, lastError, retainedPullRequests, unreadRuns }: Omit<Rebuild, "factories">) {
  if (failures > 0) yield `${failures} deliveries could not be recorded. ${lastError}`;
  if (unreadRuns > 0) yield `${unreadRuns} runs could not be read yet; the service retries them.`;
  if (retainedPullRequests > 0)
    yield `Retained the facts of ${retainedPullRequests} pull requests of which no delivery is stored any more.`;
}
