import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { CallerSigner, CallerVerifier, serveHttp2, type Http2Server } from "@millwright/rpc";
import { Metrics } from "@millwright/telemetry";
import { eventually, memoryLog, timeoutFactor } from "@millwright/testing";
import { aBenchmark, queuedRuns, stateOf, trialRuns, trialsOf } from "./benchmark-world.ts";
import { FakeOrchestrator } from "./fake-orchestrator.ts";
import { startWorld, type World } from "./setup.ts";

const REPLICAS = 6;
const [TRIALS, PARALLELISM] = [40, 15];
/**
 * When a replica is killed, by the number of its call: before its run is created, or after it and before the response.
 */
const FATES: ReadonlyMap<number, "before" | "after"> = new Map([
  [3, "before"],
  [6, "after"],
  [18, "before"],
  [24, "after"],
]);
/** Reduces leases to one second, so that the work of a dead replica is taken over after at most this time. */
const TIME_SCALE = 30;

let w: World;
let servers: Http2Server[];
let replicas: ChildProcess[];
let [calls, killed] = [0, 0];

beforeAll(async () => {
  w = await startWorld();
  const verifier = new CallerVerifier([(await CallerSigner.fromSeed("scoring", new Uint8Array(32).fill(5))).jwk]);
  const serve = (replica: number) =>
    serveHttp2(
      (router) => orchestratorOf(replica).routes(router),
      { service: "orchestrator", verifier, log: memoryLog(), metrics: new Metrics(), allow: FakeOrchestrator.allow },
      { port: 0 },
    );
  servers = await Promise.all(Array.from({ length: REPLICAS }, (_, replica) => serve(replica)));
  replicas = await Promise.all(servers.map(start));
});
afterAll(async () => {
  const alive = replicas.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
  await Promise.all(alive.map(kill));
  await Promise.all(servers.map((server) => server.close(0)));
  await w.stop();
});

/** Returns the shared orchestrator as seen by one replica; some calls kill this replica. */
function orchestratorOf(replica: number): FakeOrchestrator {
  const die = async (): Promise<void> => {
    killed += 1;
    await kill(replicas[replica]!);
    throw new Error("No one receives this.");
  };
  const doomed = new Set<string>();
  return Object.assign(new FakeOrchestrator(), {
    runs: w.orchestrator.runs,
    feed: w.orchestrator.feed,
    async beforeCreate([request]: readonly { causeKey?: string }[]) {
      const fate = FATES.get(++calls);
      if (fate === "after") doomed.add(request!.causeKey!);
      if (fate === "before") await die();
    },
    async beforeResponse([uid]: readonly string[]) {
      if (doomed.has(w.orchestrator.runs.get(uid!)!.causeKey!)) await die();
    },
  });
}

async function kill(replica: ChildProcess): Promise<void> {
  const exited = once(replica, "exit");
  replica.kill("SIGKILL");
  await exited;
}

async function start({ port }: Http2Server): Promise<ChildProcess> {
  const options = {
    databaseUrl: w.t.url,
    orchestratorUrl: `http://127.0.0.1:${port}`,
    timeScale: TIME_SCALE,
    trialsPerTeam: PARALLELISM,
  };
  const child = fork(join(import.meta.dirname, "support/replica-process.ts"), [JSON.stringify(options)], {
    execArgv: ["--conditions=@millwright/source", "--no-warnings"],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  await once(child, "message");
  return child;
}

test("six processes, of which up to four are killed while they create runs, start each trial once and lose none", async () => {
  const benchmark = await aBenchmark(w, { repetitions: TRIALS, parallelism: PARALLELISM });
  let most = 0;
  await eventually(
    async () => {
      most = Math.max(most, queuedRuns(w).length);
      for (const { uid } of queuedRuns(w)) w.orchestrator.finish(uid);
      const state = await stateOf(w, benchmark);
      return (
        state === "completed" ||
        Promise.reject(new Error(`The benchmark run is ${state}; ${trialRuns(w).length} runs exist.`))
      );
    },
    { timeoutMs: 120_000 * timeoutFactor(), everyMs: 50 },
  );
  const trials = await trialsOf(w, benchmark);
  expect(trials.map(({ state, attempt_count: attempts }) => `${state} ${attempts}`)).toEqual(
    trials.map(() => "succeeded 1"),
  );
  expect(new Set(trials.map(({ run_uid: run }) => run))).toEqual(new Set(trialRuns(w).map(({ uid }) => uid)));
  expect([trialRuns(w).length, most <= PARALLELISM]).toEqual([TRIALS, true]);
  expect(killed).toBeGreaterThan(1); // a repetition may have overtaken a call that is killed after its creation
});
