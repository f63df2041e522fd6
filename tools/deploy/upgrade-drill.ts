/**
 * Replaces every process of a deployment under load, and reports what failed: a rolling upgrade from the previous release
 * to this tree, a rolling restart, and the rollback. The manifests are the chart's with two replicas each, run as
 * `npm run test:deploy` does; what it needs, this needs.
 *
 *   npm run drill:upgrade [-- --rate 100] [--at-once 2] [--phases upgrade,restart,rollback]
 *
 * Clients send `--rate` requests a second through the public Services, without retries, while agents work. `--at-once`
 * Deployments are replaced at the same time. Exit code 1 unless no request failed, each run succeeded once, each event was
 * stored and consumed once, and each process stopped gracefully.
 *
 * During the upgrade, a request is sent once more if its connection was closed without a response, as HTTP clients may do:
 * 0.1.0 closes connections on SIGTERM without announcing it. The report counts these requests.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Client } from "pg";
import type { Release } from "./local-cluster.ts";
import { imagesOf, isolatedDirectory, runIsolated, writeImages } from "./namespaces.ts";
import { install, LOCAL_VALUES, type Installation } from "./operator.ts";
import { PREVIOUS_RELEASE, writePreviousRelease } from "./previous-release.ts";
import { renderFile } from "./render.ts";
import { Load } from "./upgrade-load.ts";

const VALUES = join(import.meta.dirname, "fixtures", PREVIOUS_RELEASE.version, "small.yaml");
/** Agents that work during each phase, and for how long. One outlives the time that a worker waits for its runs. */
const AGENTS_SECONDS = [40, 40, 120];
const CONSUMERS = ["factories", "scheduler", "scoring", "metrics"] as const;
const option = { type: "string" } as const;
const options = parseArgs({
  options: {
    rate: { ...option, default: "100" },
    "at-once": { ...option, default: "2" },
    phases: { ...option, default: "upgrade,restart,rollback" },
  },
}).values;

const began = performance.now();
const report = (text: string): void =>
  void process.stdout.write(`${((performance.now() - began) / 1_000).toFixed(1).padStart(6)} s  ${text}\n`);

const directory = isolatedDirectory();
if (directory === undefined)
  process.exitCode = runIsolated(import.meta.filename, (path) => {
    const tree = join(path, "previous");
    writePreviousRelease(tree);
    writeImages(join(path, "images-previous"), tree);
    writeImages(join(path, "images"));
    report(`the images' files of ${PREVIOUS_RELEASE.version} and of this tree are written`);
  });
else await drill(directory);

async function drill(parent: string): Promise<void> {
  const chart = join(parent, "previous/deploy/helm/millwright");
  const args = LOCAL_VALUES.small;
  const previous: Release = {
    manifests: await renderFile(4, VALUES, { chart, args }),
    images: imagesOf(join(parent, "images-previous")),
  };
  const next: Release = { manifests: await renderFile(4, VALUES, { args }), images: imagesOf(join(parent, "images")) };
  const home = join(parent, "drill");
  mkdirSync(home);
  const installation = await install(home, "small", previous);
  try {
    report(`${installation.cluster.pods.length} pods of ${PREVIOUS_RELEASE.version} are started and ready`);
    const violations = await replaceEverything(installation, previous, next);
    for (const violation of violations) process.stdout.write(`         ${violation}\n`);
    process.exitCode = violations.length === 0 ? 0 : 1;
  } finally {
    await installation.remove();
  }
}

async function replaceEverything(installation: Installation, previous: Release, next: Release): Promise<string[]> {
  const { cluster } = installation;
  const urlOf = (service: string): string => `http://${cluster.network.addressOf(service)}`;
  const load = new Load({
    url: urlOf("mw-millwright-gateway-http"),
    webhookUrl: urlOf("mw-millwright-webhook-ingress-http"),
    key: installation.ownerKey,
    perSecond: Number(options.rate),
  });
  await load.prepare();
  load.start();
  const violations: string[] = [];
  const releases: Readonly<Record<string, Release>> = { upgrade: next, restart: next, rollback: previous };
  for (const name of options.phases.split(",")) {
    const release = releases[name];
    if (!release) throw new Error(`--phases is a list of ${Object.keys(releases).join(", ")} (got ${name}).`);
    load.isRepeating = name === "upgrade";
    const [sent, failed, repeated] = [load.sent, load.failures.length, load.repeated];
    const phaseBegan = performance.now();
    for (const seconds of AGENTS_SECONDS) await load.startAgent(seconds);
    const failedStops = await cluster.rollOut(release, Number(options["at-once"]), () => {});
    violations.push(...failedStops.map((fault) => `${name}: did not stop gracefully: ${fault}`));
    report(
      `${name}: every process replaced in ${Math.round((performance.now() - phaseBegan) / 1_000)} s, ` +
        `${load.sent - sent} requests, ${load.repeated - repeated} sent twice, ${load.failures.length - failed} failed`,
    );
  }
  await load.stop();
  report(
    `${load.sent} requests, ${load.failures.length} failed; p50 ${load.percentile(0.5)} ms, p99 ${load.percentile(0.99)} ms`,
  );
  violations.push(...load.failures.map(({ atSeconds, request, problem }) => `${atSeconds} s: ${request} ${problem}`));
  violations.push(...(await load.unfinished()));
  violations.push(...(await storedViolations(installation, load)));
  return violations;
}

/** Compares what the databases store with what the load has sent. */
async function storedViolations(installation: Installation, load: Load): Promise<string[]> {
  const read = async (service: string, sql: string): Promise<Record<string, any>> => {
    const client = new Client({ connectionString: installation.databaseUrl(service) });
    await client.connect();
    try {
      return (await client.query(sql)).rows[0];
    } finally {
      await client.end();
    }
  };
  const violations: string[] = [];
  const expectEqual = (what: string, actual: unknown, expected: unknown): void => {
    if (Number(actual) !== Number(expected))
      violations.push(`${what}: ${String(actual)} instead of ${String(expected)}`);
  };
  const count = load.runs.length + load.agents.length;
  const runs = await read(
    "orchestrator",
    `SELECT (SELECT count(*) FROM runs) AS runs,
            (SELECT count(*) FROM artifacts) AS artifacts,
            (SELECT sum(attempt) FROM executions) AS attempts,
            (SELECT head FROM stream.event_meta) AS head,
            (SELECT count(*) FROM stream.event_log) AS events,
            (SELECT count(*) FROM stream.event_pending) AS pending,
            (SELECT count(*) FROM stream.event_log WHERE type = 'millwright.run.created.v1') AS created,
            (SELECT count(*) FROM stream.event_log WHERE type = 'millwright.run.finished.v1') AS finished`,
  );
  expectEqual("runs", runs["runs"], count);
  expectEqual("artifacts", runs["artifacts"], count);
  expectEqual("events in the log", runs["events"], runs["head"]);
  expectEqual("events that are not in the log", runs["pending"], 0);
  expectEqual("events of created runs", runs["created"], count);
  expectEqual("events of finished runs", runs["finished"], count);
  for (const service of CONSUMERS) {
    const sql = `SELECT min(position) AS position FROM stream.feed_cursors WHERE source = 'orchestrator'`;
    const deadline = performance.now() + 30_000;
    for (;;) {
      const { position } = await read(service, sql);
      const isBehind = position !== null && Number(position) < Number(runs["head"]);
      if (isBehind && performance.now() < deadline) continue;
      if (isBehind)
        violations.push(`${service} has consumed ${position} of ${runs["head"]} events of the orchestrator`);
      break;
    }
  }
  const deliveries = await read(
    "webhook-ingress",
    "SELECT count(*) AS stored FROM deliveries WHERE outcome = 'accepted'",
  );
  expectEqual("deliveries", deliveries["stored"], load.deliveries);
  report(
    `${runs["runs"]} runs in ${runs["attempts"]} attempts, ${runs["events"]} events, ${deliveries["stored"]} deliveries: ` +
      `${violations.length} violations`,
  );
  return violations;
}
