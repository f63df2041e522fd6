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
/** Who asks for runs as the third dies before they are made; who asks as the sixth after, before hearing of them; and so on. */
const FATES: ReadonlyMap<number, "before" | "after"> = new Map([
  [3, "before"],
  [6, "after"],
  [9, "before"],
  [12, "after"],
]);
/** Leases of half a second: a dead replica's slots are not waited for longer than that. */
const TIME_SCALE = 60;

let w: World;
let servers: Http2Server[];
let children: (ChildProcess | undefined)[];
let [calls, killed] = [0, 0];

beforeAll(async () => {
  w = await startWorld();
  const verifier = new CallerVerifier([(await CallerSigner.fromSeed("scheduler", new Uint8Array(32).fill(5))).jwk]);
  servers = await Promise.all(
    Array.from({ length: REPLICAS }, (_one, replica) =>
      serveHttp2(
        (router) => orchestratorOf(replica).routes(router),
        { service: "orchestrator", verifier, log: memoryLog(), metrics: new Metrics(), allow: FakeOrchestrator.allow },
        { port: 0 },
      ),
    ),
  );
  children = await Promise.all(Array.from({ length: REPLICAS }, (_one, replica) => start(replica)));
});
afterAll(async () => {
  for (const child of children) child?.kill("SIGKILL");
  await Promise.all(servers.map((server) => server.close(0)));
  await w.stop();
});

/** The one orchestrator, through a door that kills who comes in as one of the doomed. */
function orchestratorOf(replica: number): FakeOrchestrator {
  const die = async (): Promise<void> => {
    killed += 1;
    children[replica]!.kill("SIGKILL");
    await new Promise(() => {}); // nobody is there to be answered
  };
  const doomed = new Set<unknown>();
  return Object.assign(new FakeOrchestrator(), {
    runs: w.orchestrator.runs,
    feed: w.orchestrator.feed,
    async beforeCreate(requests: unknown) {
      const fate = FATES.get(++calls);
      if (fate === "after") doomed.add(requests);
      if (fate === "before") await die();
    },
    async beforeAnswer(requests: unknown) {
      if (doomed.has(requests)) await die();
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

test("eight processes with wrong clocks, of which four are killed while they make runs, make one run of each slot", async () => {
  for (let n = 0; n < SCHEDULES; n += 1)
    await w.aSchedule({ name: `s ${n}`, cronSchedule: "0 0 1 1 *", catchUpSeconds: 86_400 * 366 });
  // A little at a time, so that there are many calls.
  const left = (await w.rows<{ uid: string }>("SELECT uid FROM schedules")).map(({ uid }) => uid);
  while (left.length > 0) {
    const some = left.splice(0, 5);
    // As if the rule had named the present moment.
    await w.rows("UPDATE schedules SET next_slot = date_trunc('milliseconds', now()) WHERE uid = ANY ($1::uuid[])", [
      some,
    ]);
    await eventually(async () => (await w.rows("SELECT 1 FROM schedules WHERE next_slot <= now()")).length === 0);
  }
  const decided = await eventually(async () => {
    const rows = await w.rows<{ state: string; run_uid: string; n: number }>(
      "SELECT state, run_uid, count(*) OVER (PARTITION BY schedule_uid) AS n FROM slots",
    );
    if (rows.length < SCHEDULES || rows.some(({ state }) => state === "due")) throw new Error("Not all is decided.");
    return rows;
  });
  const { runs } = w.orchestrator;
  expect([...new Set(decided.map(({ state, n }) => `${state} ${n}`))]).toEqual(["fired 1"]);
  expect(new Set(decided.map(({ run_uid: uid }) => uid))).toEqual(new Set([...runs.values()].map(({ uid }) => uid)));
  expect(runs.size).toBe(SCHEDULES);
  expect(killed).toBe(FATES.size);
});

test("each slot of automations fires once, though a process is killed while they do", async () => {
  const COUNT = 300;
  const due =
    "SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), '', '0 0 1 1 *', date_trunc('milliseconds', now()), 0 FROM generate_series(1, $1)";
  await w.rows(
    `INSERT INTO trigger_schedules (uid, automation_uid, factory_uid, team_uid, name, cron, next_slot, version) ${due}`,
    [COUNT],
  );
  children.find((child) => child?.exitCode === null && child.signalCode === null)!.kill("SIGKILL");
  const fired = await eventually(async () => {
    const entities = await w.rows<{ entity_uid: string }>(
      "SELECT entity_uid FROM stream.event_log WHERE type = 'millwright.schedule_trigger.fired.v1'",
    );
    if (entities.length < COUNT) throw new Error("Not all have fired.");
    return entities;
  });
  expect([fired.length, new Set(fired.map(({ entity_uid: uid }) => uid)).size]).toEqual([COUNT, COUNT]);
});
