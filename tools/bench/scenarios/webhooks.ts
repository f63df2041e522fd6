import { createHash, randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { ensureDatabase, freePort, migrate } from "@millwright/database";
import { evaluateFilter, parseFilter, parsePayload } from "@millwright/payload-filter";
import { api } from "../api.ts";
import { DeliveryFloor } from "../baseline/deliveries.ts";
import type { Bench } from "../bench.ts";
import { Connections } from "../connections.ts";
import { costPerOperation, type Usage } from "../cost.ts";
import { serversOf, startProgram, untilReady, type Platform } from "../platform.ts";
import type { NamedProcess } from "../process-stat.ts";
import type { Measured } from "../results.ts";
import { median, round, summarize } from "../samples.ts";

/**
 * Connections of the reference implementation to PostgreSQL, for every load: with 64 connections, it inserts a sixth
 * less.
 */
const FLOOR_CONNECTIONS = 16;
const PACE_PER_SECOND = 500;
/** Deliveries per webhook; below the limit of 60 per minute, so that every delivery is accepted. */
const PER_WEBHOOK = 55;
const FACTORIES = 100;
const PER_FACTORY = 20;
const DATABASE = "bench_deliveries";
const LOADS = [
  { size: "1 KB", bytes: 1_024, atOnce: 16 },
  { size: "64 KB", bytes: 65_536, atOnce: 16 },
  // last, because its follow-up work would overlap with the next measurement
  { size: "1 KB", bytes: 1_024, atOnce: 64 },
] as const;
const MIGRATIONS = join(import.meta.dirname, "../../../apps/webhook-ingress/prisma/migrations");

type Deliver = (body: Buffer) => Promise<void>;
type Sample = { readonly perSecond: number; readonly latencies: readonly number[] };

/**
 * Measures accepted deliveries of 1 KB and 64 KB, each with its own id, spread over as many webhooks as the rate limits
 * require, and the evaluation of filters on one core. The reference implementation is this process with `pg`: one
 * insert per delivery of the row that the platform writes, into a table with the same indexes, without HTTP,
 * authentication, limits and events. It has the number of connections with which it is fastest, also when 64 concurrent
 * deliveries wait for them. In addition, the same insert is measured behind `node:http`, with the same requests as the
 * platform, to show the cost of HTTP.
 */
export async function measureWebhooks({ platform, meter, isQuick }: Bench): Promise<Measured[]> {
  const hooks = await createWebhooks(platform.url, isQuick ? 6 : FACTORIES);
  const floor = await startFloor(platform);
  const connections = new Connections(platform.webhookUrl);
  const deliver = senderTo(connections, hooks);
  const seconds = isQuick ? 0.5 : 1.5;
  const found: Measured[] = [];
  try {
    await warmUp(deliver, hooks.length);
    for (const { size, bytes, atOnce } of LOADS) {
      const bodies = bodyOf(bytes);
      const who = [
        ["millwright", deliver, serversOf(platform)],
        ["floor", floor.insert, []],
        ["floor behind http", floor.post, floor.processes],
      ] as const;
      for (const [, implementation] of who) await deliverFor(implementation, bodies, atOnce, isQuick ? 0.3 : 1);
      const samples = who.map((): Sample[] => []);
      const usages = who.map((): Usage[] => []);
      for (let turn = 0; turn < 2; turn++)
        for (const [n, [, implementation, processes]] of who.entries()) {
          const measured = await meter.measure(processes, () => deliverFor(implementation, bodies, atOnce, seconds));
          samples[n]!.push(measured.result);
          usages[n]!.push(measured.usage);
        }
      found.push(
        ...who.map(([name], n) => ({
          what: `deliver ${size} to webhooks, ${atOnce} at a time`,
          who: name,
          perSecond: round(median(samples[n]!.map((sample) => sample.perSecond))),
          latencyMs: summarize(samples[n]!.flatMap((sample) => sample.latencies)),
          ours:
            n > 0
              ? round(median(samples[n]!.map((sample, turn) => samples[0]![turn]!.perSecond / sample.perSecond)))
              : undefined,
          cost: costPerOperation(
            usages[n]!,
            samples[n]!.reduce((sum, { latencies }) => sum + latencies.length, 0),
          ),
        })),
      );
    }
    found.push({
      what: `deliver 1 KB to webhooks, ${PACE_PER_SECOND}/s`,
      who: "millwright",
      latencyMs: summarize(await deliverPaced(deliver, bodyOf(1_024), seconds * 2)),
    });
  } finally {
    connections.close();
    await floor.close();
  }
  return [...found, measureFilter()];
}

/** Sends a first delivery to each webhook, which loads and decrypts its secret, so that this is not measured. */
async function warmUp(deliver: Deliver, webhooks: number): Promise<void> {
  const body = bodyOf(1_024);
  for (let sent = 0; sent < webhooks; sent += 10) await Promise.all(Array.from({ length: 10 }, () => deliver(body)));
}

type Hook = { readonly url: URL; readonly secret: string };

async function createWebhooks(url: string, factories: number): Promise<Hook[]> {
  const hooks: Hook[] = [];
  for (let n = 0; n < factories; n++) {
    const { uid } = await api<{ uid: string }>(url, "/factory", {
      method: "POST",
      body: JSON.stringify({ name: `Webhooks ${n}` }),
    });
    const create = () =>
      api<{ ingress_url: string; secret: string }>(url, `/factory/${uid}/webhooks`, {
        method: "POST",
        body: JSON.stringify({ name: "bench" }),
      });
    const made = await Promise.all(Array.from({ length: PER_FACTORY }, create));
    hooks.push(...made.map(({ ingress_url: address, secret }) => ({ url: new URL(address), secret })));
  }
  return hooks;
}

/**
 * Returns a function that delivers to the webhooks in turn, within the rate limit of each. It throws an Error for any
 * status but 202, and when the limits of all webhooks are reached.
 */
function senderTo(connections: Connections, hooks: readonly Hook[]): Deliver {
  let sent = 0;
  return async (body) => {
    const { url, secret } = hooks[sent++ % hooks.length]!;
    if (sent > hooks.length * PER_WEBHOOK) throw new Error("The rate limits of all webhooks are used up.");
    await accepted(
      connections.post(
        url.pathname,
        `authorization: Bearer ${secret}\r\nx-service-delivery-id: ${randomUUID()}\r\n`,
        body,
      ),
    );
  };
}

async function accepted(answer: Promise<number>): Promise<void> {
  const status = await answer;
  if (status !== 202) throw new Error(`A delivery got status ${status}.`);
}

/**
 * Starts the reference implementation on the platform's PostgreSQL: in this process, and behind `node:http` in a
 * separate one.
 */
async function startFloor(
  platform: Platform,
): Promise<{ insert: Deliver; post: Deliver; processes: readonly NamedProcess[]; close(): Promise<void> }> {
  const databaseUrl = await ensureDatabase(platform.databaseUrl("postgres"), DATABASE);
  await migrate(databaseUrl, MIGRATIONS);
  const floor = new DeliveryFloor(databaseUrl, FLOOR_CONNECTIONS);
  const url = `http://127.0.0.1:${await freePort()}`;
  const dir = await mkdtemp(join(tmpdir(), "millwright-bench-floor-"));
  process.once("exit", () => rmSync(dir, { recursive: true, force: true }));
  const program = startProgram("tools/bench/baseline/delivery-server.ts", dir, {
    DELIVERIES_DATABASE_URL: databaseUrl,
    PORT: new URL(url).port,
    CONNECTIONS: String(FLOOR_CONNECTIONS),
  });
  const connections = new Connections(url);
  await untilReady(program, url);
  return {
    insert: async (body) => void (await floor.insert(body)),
    post: (body) => accepted(connections.post("/", `x-service-delivery-id: ${randomUUID()}\r\n`, body)),
    processes: [{ name: "floor", pid: program.child.pid ?? 0 }],
    close: async () => {
      connections.close();
      await Promise.all([floor.close(), program.stop()]);
    },
  };
}

/** Returns JSON of about this size that does not compress. */
function bodyOf(bytes: number): Buffer {
  let text = "";
  for (let n = 0; text.length < bytes - 40; n++) text += createHash("sha256").update(String(n)).digest("base64");
  return Buffer.from(JSON.stringify({ event: "build.finished", text: text.slice(0, bytes - 40) }));
}

async function deliverFor(deliver: Deliver, body: Buffer, atOnce: number, seconds: number): Promise<Sample> {
  const latencies: number[] = [];
  const beganMs = performance.now();
  const untilMs = beganMs + seconds * 1000;
  const loop = async (): Promise<void> => {
    while (performance.now() < untilMs) latencies.push(await timed(() => deliver(body)));
  };
  await Promise.all(Array.from({ length: atOnce }, loop));
  return { perSecond: latencies.length / ((performance.now() - beganMs) / 1000), latencies };
}

/** Sends deliveries at a fixed rate, independent of the responses. The latency is measured from the scheduled time. */
async function deliverPaced(deliver: Deliver, body: Buffer, seconds: number): Promise<number[]> {
  const beganMs = performance.now();
  const pending: Promise<number>[] = [];
  for (let n = 0; n < seconds * PACE_PER_SECOND; n++) {
    const dueMs = beganMs + (n * 1000) / PACE_PER_SECOND;
    while (performance.now() < dueMs) await pause(1);
    const latencyMs = deliver(body).then(() => performance.now() - dueMs);
    // reported by Promise.all below; an unhandled rejection before that would stop the benchmark
    latencyMs.catch(() => {});
    pending.push(latencyMs);
  }
  return Promise.all(pending);
}

async function timed(f: () => Promise<void>): Promise<number> {
  const beganMs = performance.now();
  await f();
  return performance.now() - beganMs;
}

/** Measures a filter on a typical payload of a code host, which is parsed and matched each time. */
function measureFilter(): Measured {
  const body = Buffer.from(
    JSON.stringify({
      action: "opened",
      number: 7,
      pull_request: {
        draft: false,
        labels: [{ name: "bug" }, { name: "ui" }],
        base: { ref: "main" },
        body: "x".repeat(800),
      },
    }),
  );
  const { filter } = parseFilter({
    action: ["opened", "reopened"],
    pull_request: { draft: [false], labels: { name: ["bug"] }, base: { ref: { not_in: ["wip"] } } },
  });
  const evaluate = (): boolean => evaluateFilter(filter!, parsePayload(body)!).matches;
  for (let n = 0; n < 5_000; n++) if (!evaluate()) throw new Error("The filter must match.");
  const [count, beganMs] = [50_000, performance.now()];
  for (let n = 0; n < count; n++) evaluate();
  return {
    what: "evaluate a payload filter, 1 KB body",
    who: "millwright",
    perSecond: round(count / ((performance.now() - beganMs) / 1000)),
  };
}
