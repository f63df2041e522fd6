import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { call } from "@millwright/rpc";
import { eventually } from "@millwright/testing";
import { bearer, NOW, OWNER, startWorld, type World } from "./setup.ts";

let w: World;
beforeAll(async () => void (w = await startWorld({ trustedProxies: ["127.0.0.1"] })));
afterAll(() => w?.stop());
beforeEach(() => w.clock.set(NOW));

const from = (address: string) => ({ "x-forwarded-for": address });
const statuses = async (count: number, send: (n: number) => Promise<{ status: number }>) => {
  const found: number[] = [];
  for (let n = 0; n < count; n++) found.push((await send(n)).status);
  return found;
};

describe("60 deliveries a minute", () => {
  test("are accepted, the next is 429, and the same request is accepted after Retry-After seconds", async () => {
    const { uid, secret } = await w.aWebhook();
    const send = (n: number) => w.send(uid, { headers: bearer(secret), body: String(n) });
    w.clock.advance(250);
    expect(await statuses(60, send)).toEqual(Array(60).fill(202));
    w.clock.advance(1_500);
    const refused = await send(60);
    expect(refused).toMatchObject({ status: 429, body: { reason: "too_many_deliveries", retryable: true } });
    expect([refused.headers.get("retry-after"), refused.headers.get("x-should-retry")]).toEqual(["59", "true"]);
    expect(await w.logOf(uid)).toHaveLength(60);
    w.clock.advance(58_000);
    expect((await send(60)).status).toBe(429);
    w.clock.advance(1_000);
    expect((await send(60)).status).toBe(202);
  });
  test("use a sliding window", async () => {
    const { uid, secret } = await w.aWebhook();
    const send = (n: number) => w.send(uid, { headers: bearer(secret), body: String(n) });
    expect(await statuses(30, send)).toEqual(Array(30).fill(202));
    w.clock.advance(40_000);
    expect(await statuses(31, (n) => send(100 + n))).toEqual([...Array(30).fill(202), 429]);
    w.clock.advance(20_000);
    expect(await statuses(31, (n) => send(200 + n))).toEqual([...Array(30).fill(202), 429]);
  });
  test("match a model of the sliding window, sequentially and concurrently", async () => {
    const { uid, secret } = await w.aWebhook();
    let times: number[] = [];
    for (const [n, [afterMs, count]] of [
      [0, 1],
      [7_001, 20],
      [13_000, 1],
      [0, 3],
      [25_500, 30],
      [14_498, 9],
      [1, 5],
      [0, 20],
      [12_999, 40],
      [1, 1],
      [1, 6],
      [60_000, 70],
      [59_999, 1],
      [1, 61],
    ].entries()) {
      w.clock.advance(afterMs!);
      const now = w.clock.now().getTime();
      times = times.filter((at) => at > now - 60_000);
      const capacity = Math.min(count!, 60 - times.length);
      const responses = await Promise.all(
        Array.from({ length: count! }, (_, m) => w.send(uid, { headers: bearer(secret), body: `[${n},${m}]` })),
      );
      expect([
        n,
        responses.filter(({ status }) => status === 202).length,
        responses.filter(({ status }) => status === 429).length,
      ]).toEqual([n, capacity, count! - capacity]);
      times.push(...Array<number>(capacity).fill(now));
    }
  });
  test("include duplicates, bodies that are not JSON, and bodies that are too large", async () => {
    const { uid, secret } = await w.aWebhook();
    const bodies = ["{}", "{}", "no json", `"${"x".repeat(262_144)}"`];
    expect(await statuses(60, (n) => w.send(uid, { headers: bearer(secret), body: bodies[n % 4]! }))).toEqual(
      Array(15).fill([202, 202, 400, 413]).flat(),
    );
    for (const body of bodies) expect((await w.send(uid, { headers: bearer(secret), body })).status).toBe(429);
  });
  test("are counted per webhook and across all replicas", async () => {
    const [{ uid, secret }, other] = [await w.aWebhook(), await w.aWebhook()];
    const replicas = [w.url, (await w.replica()).url, (await w.replica()).url];
    const responses = await Promise.all(
      Array.from({ length: 90 }, (_, n) => w.send(uid, { headers: bearer(secret), body: String(n) }, replicas[n % 3])),
    );
    const counted = responses.map(({ status }) => status).toSorted((a, b) => a - b);
    expect(counted).toEqual([...Array(60).fill(202), ...Array(30).fill(429)]);
    expect((await w.send(other.uid, { headers: bearer(other.secret) })).status).toBe(202);
  });
});

describe("failed authentication", () => {
  const fail = (uid: string, address: string) => w.send(uid, { headers: { ...bearer("wrong"), ...from(address) } });

  test("is 401 ten times a minute per address, then 429, also with the right credential; other addresses are unaffected", async () => {
    const { uid, secret } = await w.aWebhook();
    expect(await statuses(10, () => fail(uid, "198.51.100.1"))).toEqual(Array(10).fill(401));
    w.clock.advance(10_000);
    const refused = await fail(uid, "198.51.100.1");
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "50"]);
    expect((await w.send(uid, { headers: { ...bearer(secret), ...from("198.51.100.1") } })).status).toBe(429);
    expect((await w.send(uid, { headers: { ...bearer(secret), ...from("198.51.100.2") } })).status).toBe(202);
    expect((await fail(uid, "198.51.100.2")).status).toBe(401);
    w.clock.advance(50_000);
    expect((await w.send(uid, { headers: { ...bearer(secret), ...from("198.51.100.1") }, body: "1" })).status).toBe(
      202,
    );
  });
  test("of sixty addresses is then 429 and no longer logged, while a right credential is accepted", async () => {
    const { uid, secret } = await w.aWebhook();
    expect(await statuses(60, (n) => fail(uid, `203.0.113.${n}`))).toEqual(Array(60).fill(401));
    for (let n = 60; n < 80; n++) {
      const refused = await fail(uid, `203.0.113.${n}`);
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "60"]);
      expect(
        (await w.send(uid, { headers: { ...bearer(secret), ...from("192.0.2.1") }, body: String(n) })).status,
      ).toBe(202);
    }
    expect((await w.logOf(uid)).filter(([outcome]) => outcome === "rejected_auth")).toHaveLength(60);
  });
  test("and deliveries have separate budgets", async () => {
    const { uid, secret } = await w.aWebhook();
    await statuses(9, () => fail(uid, "198.51.100.3"));
    expect(
      await statuses(61, (n) =>
        w.send(uid, { headers: { ...bearer(secret), ...from("198.51.100.3") }, body: String(n) }),
      ),
    ).toEqual([...Array(60).fill(202), 429]);
    expect((await fail(uid, "198.51.100.3")).status).toBe(401);
    expect((await fail(uid, "198.51.100.3")).status).toBe(429);
  });
  test("of concurrent requests from one address across replicas is 401 ten times", async () => {
    const { uid } = await w.aWebhook();
    const second = await w.replica();
    const responses = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        w.send(uid, { headers: { ...bearer("wrong"), ...from("198.51.100.4") } }, n % 2 ? w.url : second.url),
      ),
    );
    expect(responses.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      ...Array(10).fill(401),
      ...Array(30).fill(429),
    ]);
  });
  test("includes an unverified body that is too large for a signed webhook: 413, and counted", async () => {
    const { uid } = await w.aWebhook({ authMode: "signature", signatureScheme: "github", secret: "s" });
    const send = () => w.send(uid, { headers: from("198.51.100.5"), body: `"${"x".repeat(262_144)}"` });
    expect(await statuses(11, send)).toEqual([...Array(10).fill(413), 429]);
    expect((await w.logOf(uid)).map(([outcome]) => outcome)).toEqual(Array(10).fill("rejected_too_large"));
  });
  test("does not depend on the size or validity of the body", async () => {
    const { uid } = await w.aWebhook();
    for (const body of ["", "no json", `"${"x".repeat(300_000)}"`])
      expect((await w.send(uid, { headers: { ...bearer("wrong"), ...from("198.51.100.6") }, body })).status).toBe(401);
  });
});

describe("pruning", () => {
  const DAY_MS = 24 * 3_600_000;
  /** Inserts entries of one webhook, `ages` in days. */
  async function entries(ages: readonly number[]): Promise<string> {
    const { uid } = await w.aWebhook();
    for (const age of ages) {
      const rejected = age % 2 === 0;
      await w.rows(
        `INSERT INTO deliveries (uid, webhook_uid, team_uid, factory_uid, outcome, dedupe_kind, dedupe_key, size_bytes, received_at, payload)
         VALUES (gen_random_uuid(), $1, $1, $1, $2, $3, $4, 1, $5, $6)`,
        [
          uid,
          rejected ? "rejected_auth" : "accepted",
          rejected ? null : "hash",
          rejected ? null : `h${age}`,
          new Date(NOW.getTime() - age * DAY_MS),
          rejected ? null : Buffer.from("1"),
        ],
      );
    }
    return uid;
  }
  const remaining = async (uid: string) =>
    (await w.rows<{ count: number }>("SELECT count(*) FROM deliveries WHERE webhook_uid = $1", [uid]))[0]!.count;
  const range = (first: number, count: number) => Array.from({ length: count }, (_, n) => first + n);

  test("deletes entries older than a week except the newest fifty, rejected entries included", async () => {
    const [few, many, mixed] = [
      await entries(range(8, 50)),
      await entries(range(8, 60)),
      await entries([...range(0, 8).map((n) => n + 0.5), ...range(10, 60)]),
    ];
    await w.service.prune();
    expect([await remaining(few), await remaining(many), await remaining(mixed)]).toEqual([50, 50, 50]);
    await w.service.prune();
    expect(await remaining(many)).toBe(50);
  });
  test("retains everything younger than a week", async () => {
    const uid = await entries(range(0, 80).map((n) => n * 0.08));
    await w.service.prune();
    expect(await remaining(uid)).toBe(80);
  });
  test("deletes entries of a deleted webhook when they are a week old", async () => {
    const [deleted, existing] = [await entries([1.5, 3, 6.99, 7.01, 20]), await entries([20])];
    await w.client.deleteWebhook({ webhookUid: deleted }, call(OWNER));
    await w.service.prune();
    expect([await remaining(deleted), await remaining(existing)]).toEqual([3, 1]);
    w.clock.advance(5.51 * DAY_MS); // the youngest is a week old
    await w.service.prune();
    expect([await remaining(deleted), await remaining(existing)]).toEqual([0, 1]);
  });
  test("runs in the background", async () => {
    const uid = await entries(range(8, 51));
    await (await w.replica()).service.start();
    expect(await eventually(async () => (await remaining(uid)) === 50)).toBe(true);
  });
  test("deletes unused budgets", async () => {
    const { uid, secret } = await w.aWebhook();
    await w.send(uid, { headers: bearer(secret) });
    w.clock.advance(60_000);
    await w.service.prune();
    expect(await w.rows("SELECT bucket FROM rate_windows WHERE receiver_uid = $1", [uid])).toEqual([]);
    expect((await w.client.getWebhook({ webhookUid: uid }, call(OWNER))).webhook!.lastDeliveryAt).toBeDefined();
  });
});
