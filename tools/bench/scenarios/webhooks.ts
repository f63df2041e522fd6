import { createHash, randomUUID } from "node:crypto";
import { Agent, request } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { Pool } from "pg";
import { evaluateFilter, parseFilter, parsePayload } from "@millwright/payload-filter";
import { api } from "../api.ts";
import type { Bench } from "../bench.ts";
import type { Measured } from "../results.ts";
import { median, round, summarize } from "../samples.ts";

const AT_ONCE = 16;
const PACE_PER_SECOND = 500;
/** Below the 60 a minute, so that nothing is measured but accepted deliveries. */
const PER_WEBHOOK = 55;
const FACTORIES = 40;
const PER_FACTORY = 20;

type Deliver = (body: Buffer) => Promise<void>;
type Shot = { readonly perSecond: number; readonly latencies: readonly number[] };

/**
 * Accepted deliveries of 1 KB and 64 KB, each with an id of its own, spread over enough webhooks for their rate; and as many filters as one
 * processor evaluates. The floor is this process with `pg`: one insert per delivery into a table with the same unique key, and nothing else –
 * no HTTP, no credential, no limit, no event.
 */
export async function measureWebhooks({ platform, baseline, isQuick }: Bench): Promise<Measured[]> {
  const deliver = senderTo(await createWebhooks(platform.url, isQuick ? 6 : FACTORIES));
  const floor = await DeliveryFloor.open(baseline.databaseUrl);
  const seconds = isQuick ? 0.5 : 1.5;
  const found: Measured[] = [];
  try {
    for (const [size, bytes] of [["1 KB", 1_024], ["64 KB", 65_536]] as const) {
      const bodies = bodyOf(bytes);
      const who = [["millwright", deliver], ["floor", floor.insert]] as const;
      for (const [, one] of who) await deliverFor(one, bodies, 0.3);
      const shots = who.map((): Shot[] => []);
      for (let turn = 0; turn < 2; turn++) for (const [n, [, one]] of who.entries()) shots[n]!.push(await deliverFor(one, bodies, seconds));
      found.push(...who.map(([name], n) => ({
        what: `deliver ${size} to webhooks, ${AT_ONCE} at a time`, who: name, perSecond: round(median(shots[n]!.map((shot) => shot.perSecond))), latencyMs: summarize(shots[n]!.flatMap((shot) => shot.latencies)),
        ...(n > 0 && { ours: round(median(shots[n]!.map((shot, turn) => shots[0]![turn]!.perSecond / shot.perSecond))) }),
      })));
    }
    found.push({ what: `deliver 1 KB to webhooks, ${PACE_PER_SECOND}/s`, who: "millwright", latencyMs: summarize(await deliverPaced(deliver, bodyOf(1_024), seconds * 2)) });
  } finally {
    await floor.close();
  }
  return [...found, measureFilter()];
}

type Hook = { readonly url: URL; readonly secret: string };

async function createWebhooks(url: string, factories: number): Promise<Hook[]> {
  const hooks: Hook[] = [];
  for (let n = 0; n < factories; n++) {
    const { uid } = await api<{ uid: string }>(url, "/factory", { method: "POST", body: JSON.stringify({ name: `Webhooks ${n}` }) });
    const create = () => api<{ ingress_url: string; secret: string }>(url, `/factory/${uid}/webhooks`, { method: "POST", body: JSON.stringify({ name: "bench" }) });
    const made = await Promise.all(Array.from({ length: PER_FACTORY }, create));
    hooks.push(...made.map(({ ingress_url: address, secret }) => ({ url: new URL(address), secret })));
  }
  return hooks;
}

/** Sends to each webhook as often as it takes within a minute. Errors: any answer but 202; no webhook is left. */
function senderTo(hooks: readonly Hook[]): Deliver {
  const agent = new Agent({ keepAlive: true, maxSockets: 256 });
  let sent = 0;
  return (body) => {
    const hook = hooks[sent++ % hooks.length]!;
    if (sent > hooks.length * PER_WEBHOOK) throw new Error("More deliveries than there are webhooks for.");
    return new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${hook.secret}`, "x-service-delivery-id": randomUUID(), "content-length": body.length };
      const asked = request(hook.url, { method: "POST", agent, headers }, (answer) => {
        answer.resume().once("end", () => (answer.statusCode === 202 ? resolve() : reject(new Error(`a delivery was answered ${answer.statusCode}`))));
      });
      asked.once("error", reject).end(body);
    });
  };
}

/** A delivery as one insert that refuses a known identity. */
class DeliveryFloor {
  readonly #pool: Pool;
  readonly #webhook = randomUUID();

  private constructor(pool: Pool) {
    this.#pool = pool;
  }

  static async open(connectionString: string): Promise<DeliveryFloor> {
    const pool = new Pool({ connectionString, max: 10 });
    await pool.query("CREATE TABLE IF NOT EXISTS floor_deliveries (uid uuid PRIMARY KEY, webhook_uid uuid NOT NULL, delivery_id text NOT NULL, received_at timestamptz NOT NULL, payload bytea NOT NULL, UNIQUE (webhook_uid, delivery_id))");
    return new DeliveryFloor(pool);
  }

  readonly insert: Deliver = async (body) => {
    await this.#pool.query({
      name: "deliver", text: "INSERT INTO floor_deliveries (uid, webhook_uid, delivery_id, received_at, payload) VALUES ($1, $2, $3, now(), $4) ON CONFLICT (webhook_uid, delivery_id) DO NOTHING",
      values: [randomUUID(), this.#webhook, randomUUID(), body],
    });
  };

  close(): Promise<void> {
    return this.#pool.end();
  }
}

/** JSON of about so many bytes that does not compress. */
function bodyOf(bytes: number): Buffer {
  let text = "";
  for (let n = 0; text.length < bytes - 40; n++) text += createHash("sha256").update(String(n)).digest("base64");
  return Buffer.from(JSON.stringify({ event: "build.finished", text: text.slice(0, bytes - 40) }));
}

async function deliverFor(deliver: Deliver, body: Buffer, seconds: number): Promise<Shot> {
  const latencies: number[] = [];
  const beganMs = performance.now();
  const untilMs = beganMs + seconds * 1000;
  const loop = async (): Promise<void> => {
    while (performance.now() < untilMs) latencies.push(await timed(() => deliver(body)));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, loop));
  return { perSecond: latencies.length / ((performance.now() - beganMs) / 1000), latencies };
}

/** Each at its time, whatever became of those before; latency counts from that time. */
async function deliverPaced(deliver: Deliver, body: Buffer, seconds: number): Promise<number[]> {
  const beganMs = performance.now();
  const under: Promise<number>[] = [];
  for (let n = 0; n < seconds * PACE_PER_SECOND; n++) {
    const dueMs = beganMs + (n * 1000) / PACE_PER_SECOND;
    while (performance.now() < dueMs) await pause(1);
    under.push(deliver(body).then(() => performance.now() - dueMs));
  }
  return Promise.all(under);
}

async function timed(f: () => Promise<void>): Promise<number> {
  const beganMs = performance.now();
  await f();
  return performance.now() - beganMs;
}

/** A body as code hosts send it, read and matched anew each time. */
function measureFilter(): Measured {
  const body = Buffer.from(JSON.stringify({ action: "opened", number: 7, pull_request: { draft: false, labels: [{ name: "bug" }, { name: "ui" }], base: { ref: "main" }, body: "x".repeat(800) } }));
  const { filter } = parseFilter({ action: ["opened", "reopened"], pull_request: { draft: [false], labels: { name: ["bug"] }, base: { ref: { not_in: ["wip"] } } } });
  const evaluate = (): boolean => evaluateFilter(filter!, parsePayload(body)!).matches;
  for (let n = 0; n < 5_000; n++) if (!evaluate()) throw new Error("The filter must match.");
  const [count, beganMs] = [50_000, performance.now()];
  for (let n = 0; n < count; n++) evaluate();
  return { what: "evaluate a payload filter, 1 KB body", who: "millwright", perSecond: round(count / ((performance.now() - beganMs) / 1000)) };
}
