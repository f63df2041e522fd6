import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { CallerSigner, CallerVerifier, serveHttp2, type Http2Server } from "@millwright/rpc";
import { Metrics } from "@millwright/telemetry";
import { eventually, memoryLog } from "@millwright/testing";
import { FakeOrchestrator } from "./fake-orchestrator.ts";
import { startWorld, type World } from "./setup.ts";

const REPLICAS = 8;
const SKEW_MS = 300_000;
const SCHEDULES = 100;
/** Calls by their number: the caller is killed before or after its runs are created. */
const KILLED_CALLS: ReadonlyMap<number, "before" | "after"> = new Map([
  [3, "before"],
  [6, "after"],
  [9, "before"],
  [12, "after"],
]);
/** Leases of half a second, so that slots of a dead replica are decided soon. */
const TIME_SCALE = 60;

let w: World;
let servers: Http2Server[];
let children: (ChildProcess | undefined)[];
let [calls, killed] = [0, 0];

beforeAll(async () => {
  w = await startWorld();
  const verifier = new CallerVerifier([(await CallerSigner.fromSeed("scheduler", new Uint8Array(32).fill(5))).jwk]);
  servers = await Promise.all(
    Array.from({ length: REPLICAS }, (_, replica) =>
      serveHttp2(
        (router) => orchestratorOf(replica).routes(router),
        { service: "orchestrator", verifier, log: memoryLog(), metrics: new Metrics(), allow: FakeOrchestrator.allow },
        { port: 0 },
      ),
    ),
  );
  children = await Promise.all(Array.from({ length: REPLICAS }, (_, replica) => start(replica)));
});
afterAll(async () => {
  for (const child of children) child?.kill("SIGKILL");
  await Promise.all(servers.map((server) => server.close(0)));
  await w.stop();
});

/** Returns the shared orchestrator as one replica sees it; it kills the replica at the calls of KILLED_CALLS. */
function orchestratorOf(replica: number): FakeOrchestrator {
  const kill = async (): Promise<void> => {
    killed += 1;
    children[replica]!.kill("SIGKILL");
    await new Promise(() => {}); // the caller is dead
  };
  const killAfter = new Set<unknown>();
  return Object.assign(new FakeOrchestrator(), {
    runs: w.orchestrator.runs,
    feed: w.orchestrator.feed,
    async beforeCreate(requests: unknown) {
      const moment = KILLED_CALLS.get(++calls);
      if (moment === "after") killAfter.add(requests);
      if (moment === "before") await kill();
    },
    async beforeResponse(requests: unknown) {
      if (killAfter.has(requests)) await kill();
    },
  });
}

async function start(replica: number): Promise<ChildProcess> {
  const options = {
    databaseUrl: w.t.url,
    orchestratorUrl: `http://127.0.0.1:${servers[replica]!.port}`,
    skewMs: replica % 2 ? SKEW_MS : -SKEW_MS,
    timeScale: TIME_SCALE,
  };
  const flags = ["--conditions=@millwright/source", "--no-warnings"];
  const child = fork(join(import.meta.dirname, "support/replica-process.ts"), [JSON.stringify(options)], {
    execArgv: flags,
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  await once(child, "message");
  return child;
}

test("eight processes with wrong clocks create one run per slot although four are killed while creating runs", async () => {
  for (let n = 0; n < SCHEDULES; n += 1)
    await w.aSchedule({ name: `s ${n}`, cronSchedule: "0 0 1 1 *", catchUpSeconds: 86_400 * 366 });
  // In small batches, so that there are many calls.
  const remaining = (await w.rows<{ uid: string }>("SELECT uid FROM schedules")).map(({ uid }) => uid);
  while (remaining.length > 0) {
    const batch = remaining.splice(0, 5);
    // As if the rule had named the present moment.
    await w.rows("UPDATE schedules SET next_slot_at = date_trunc('milliseconds', now()) WHERE uid = ANY ($1::uuid[])", [
      batch,
    ]);
    await eventually(async () => (await w.rows("SELECT 1 FROM schedules WHERE next_slot_at <= now()")).length === 0);
  }
  const decided = await eventually(async () => {
    const rows = await w.rows<{ state: string; run_uid: string; n: number }>(
      "SELECT state, run_uid, count(*) OVER (PARTITION BY schedule_uid) AS n FROM slots",
    );
    if (rows.length < SCHEDULES || rows.some(({ state }) => state === "due")) throw new Error("Slots are undecided.");
    return rows;
  });
  const { runs } = w.orchestrator;
  expect([...new Set(decided.map(({ state, n }) => `${state} ${n}`))]).toEqual(["fired 1"]);
  expect(new Set(decided.map(({ run_uid: uid }) => uid))).toEqual(new Set([...runs.values()].map(({ uid }) => uid)));
  expect(runs.size).toBe(SCHEDULES);
  expect(killed).toBe(KILLED_CALLS.size);
});

test("each slot of automations fires once although a process is killed at the same time", async () => {
  const COUNT = 300;
  const due =
    "SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), '', '0 0 1 1 *', date_trunc('milliseconds', now()), 0 FROM generate_series(1, $1)";
  await w.rows(
    `INSERT INTO trigger_schedules (uid, automation_uid, factory_uid, team_uid, name, cron, next_slot_at, version) ${due}`,
    [COUNT],
  );
  children.find((child) => child?.exitCode === null && child.signalCode === null)!.kill("SIGKILL");
  const fired = await eventually(async () => {
    const entities = await w.rows<{ entity_uid: string }>(
      "SELECT entity_uid FROM stream.event_log WHERE type = 'millwright.schedule_trigger.fired.v1'",
    );
    if (entities.length < COUNT) throw new Error("Some slots have not fired.");
    return entities;
  });
  expect([fired.length, new Set(fired.map(({ entity_uid: uid }) => uid)).size]).toEqual([COUNT, COUNT]);
});
