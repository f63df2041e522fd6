import { createHmac, randomBytes, randomInt, randomUUID } from "node:crypto";
import { once } from "node:events";
import { IncomingMessage } from "node:http";
import { connect, Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { manualClock } from "@millwright/clock";
import { aRequest, isJsonText } from "./fuzz.ts";
import { readBody } from "../src/http/read-body.ts";
import { identityOf } from "../src/domain/delivery.ts";
import { receiveDelivery } from "../src/usecases/receive-delivery.ts";
import type { Entry } from "../src/store/delivery-store.ts";
import type { Receiver } from "../src/store/receivers.ts";
import { bearer, NOW, startWorld, type World } from "./setup.ts";

let w: World;
beforeAll(async () => void (w = await startWorld({ trustedProxies: ["127.0.0.1"] })));
afterAll(() => w?.stop());

/** Writes pieces of a request to the port and returns everything that is received until the connection ends. */
async function raw(port: number, pieces: readonly (string | Buffer)[], { isHalfClosed = false } = {}): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.on("data", (chunk) => (text += chunk.toString("latin1")));
  socket.on("error", () => {});
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  for (const piece of pieces) {
    socket.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (isHalfClosed) socket.end();
  await closed;
  return text;
}
const head = (uid: string, secret: string, more: string) =>
  `POST /webhooks/w/${uid} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${secret}\r\nconnection: close\r\n${more}\r\n`;
const statusOf = (text: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0);

describe("misbehaving senders", () => {
  test("a body that arrives byte by byte is accepted; one that stalls is 400, stores nothing, and its connection is closed", async () => {
    const { uid, secret } = await w.aWebhook();
    expect(statusOf(await raw(w.port, [head(uid, secret, "content-length: 2\r\n"), "{", "}"]))).toBe(202);
    const impatient = await w.replica({ bodyTimeoutMs: 200 });
    const lost = await raw(impatient.port, [head(uid, secret, "content-length: 3\r\n"), "{}"]);
    expect([statusOf(lost), lost.includes("body_incomplete"), /connection: close/i.test(lost)]).toEqual([
      400,
      true,
      true,
    ]);
    expect(await w.logOf(uid)).toHaveLength(1);
  });
  test("a Content-Length larger than the body stores nothing", async () => {
    const { uid, secret } = await w.aWebhook();
    expect([0, 400]).toContain(
      statusOf(await raw(w.port, [head(uid, secret, "content-length: 10\r\n"), "{}"], { isHalfClosed: true })),
    );
    expect(await w.logOf(uid)).toEqual([]);
  });
  test("with a Content-Length smaller than the body, only the declared bytes are a delivery", async () => {
    const { uid, secret } = await w.aWebhook();
    expect([202, 400]).toContain(statusOf(await raw(w.port, [head(uid, secret, "content-length: 1\r\n"), "12345"]))); // the parser may reject the rest first
    for (const [outcome, , size] of await w.logOf(uid)) expect([outcome, size]).toEqual(["accepted", 1]);
  });
  test("a Content-Length beyond the limit is 413 without waiting for the body", async () => {
    const { uid, secret } = await w.aWebhook();
    expect(statusOf(await raw(w.port, [head(uid, secret, "content-length: 9000000000000\r\n"), "{}"]))).toBe(413);
    expect((await w.logOf(uid))[0]).toEqual(["rejected_too_large", "", 9_000_000_000_000]);
  });
  test("two lengths, a negative length and an invalid chunk are rejected by the parser, and nothing is stored", async () => {
    const { uid, secret } = await w.aWebhook();
    for (const more of [
      "content-length: 2\r\ncontent-length: 3\r\n",
      "content-length: -1\r\n",
      "content-length: 2\r\ntransfer-encoding: chunked\r\n",
    ])
      expect(statusOf(await raw(w.port, [head(uid, secret, more), "{}"], { isHalfClosed: true }))).toBe(400);
    expect([0, 400]).toContain(
      statusOf(
        await raw(w.port, [head(uid, secret, "transfer-encoding: chunked\r\n"), "zz\r\n{}\r\n"], {
          isHalfClosed: true,
        }),
      ),
    );
    expect(await w.logOf(uid)).toEqual([]);
  });
  test.each<[string, number, string, (secret: string) => string]>([
    ["413", 413, "content-length: 9000000000000\r\n", (secret) => secret],
    ["401", 401, "content-length: 100\r\n", () => "wrong"],
  ])(
    "the response to an unfinished body is immediate: %s while the sender is still writing",
    async (_what, status, length, given) => {
      const patient = await w.replica({ drainMs: 3_600_000 }); // the response does not wait for the rest of the body
      const { uid, secret } = await w.aWebhook();
      const socket = connect(patient.port, "127.0.0.1");
      const responded = new Promise<string>((resolve) => {
        let text = "";
        socket.on("data", (chunk) => {
          text += chunk.toString("latin1");
          if (text.endsWith("}")) resolve(text);
        });
      });
      socket.write(`${head(uid, given(secret), length)}{`);
      const response = await responded;
      expect([
        statusOf(response),
        /content-type: application\/problem\+json/i.test(response),
        /connection: close/i.test(response),
      ]).toEqual([status, true, true]);
      expect(socket.destroyed).toBe(false);
      socket.destroy();
    },
  );
  test("a sender that disconnects leaves nothing and does not delay others", async () => {
    const { uid, secret } = await w.aWebhook();
    const socket = connect(w.port, "127.0.0.1");
    socket.write(head(uid, secret, "content-length: 100\r\n") + "{");
    expect((await w.send(uid, { headers: bearer(secret) })).status).toBe(202);
    socket.destroy();
    expect((await w.send(uid, { headers: bearer(secret), body: "1" })).status).toBe(202);
    expect(await w.logOf(uid)).toHaveLength(2);
  });
});

test("a sender that disconnected before its body is read is detected at once", async () => {
  const req = new IncomingMessage(new Socket());
  req.destroy();
  await once(req, "close");
  expect(await readBody(req, 10, 600_000)).toEqual({ isLost: true });
});

test("the use case gives every random request the expected outcome", async () => {
  const clock = manualClock(NOW);
  const runs = Number(process.env["MILLWRIGHT_FUZZ"] ?? 5_000);
  for (let n = 0; n < runs; n++) {
    const { to, cached, inbound, body, isRight, at } = aRequest(NOW);
    clock.set(at);
    const entries: Entry[] = [];
    const failures: unknown[] = [];
    const deliveries = {
      cachedReceiver: () => cached,
      findReceiver: async () => ({ to, refusedForSeconds: undefined }),
      record: async (receiver: Receiver, _address: string, entry: Entry) =>
        receiver.version === to.version ? (entries.push(entry), { outcome: entry.outcome }) : ("stale" as const),
      recordFailure: async (_to: Receiver, _address: string, entry: Pick<Entry, "outcome">) => (
        failures.push(entry),
        { outcome: entry.outcome }
      ),
    };
    const reception = await receiveDelivery({ deliveries, clock }, inbound);
    const isText = body.length <= 262_144 && isJsonText(body);
    const expected =
      body.length > 262_144
        ? to.authMode === "signature" || isRight
          ? "rejected_too_large"
          : "rejected_auth"
        : !isRight
          ? "rejected_auth"
          : isText
            ? "accepted"
            : "rejected_invalid_json";
    const stored = entries.flatMap(({ payload, identity }) =>
      payload ? [[Buffer.from(payload).toString("latin1"), identity]] : [],
    );
    expect([n, reception.outcome, stored]).toEqual([
      n,
      expected,
      expected === "accepted" ? [[body.toString("latin1"), identityOf(to, inbound.header, body)]] : [],
    ]);
  }
});

test("the listener gives every random request the expected status, never a 5xx", async () => {
  const count = Number(process.env["MILLWRIGHT_LISTENER_FUZZ"] ?? 2_000);
  const hooks: Awaited<ReturnType<World["aWebhook"]>>[] = [];
  for (let n = 0; n < Math.ceil(count / 40); n++)
    hooks.push(
      await w.aWebhook(
        n % 3 === 0
          ? {}
          : n % 3 === 1
            ? { authMode: "url_token" }
            : { authMode: "signature", signatureScheme: "github", secret: randomUUID() },
      ),
    );
  const work = async (first: number) => {
    for (let n = first; n < count; n += 4) {
      const { uid, secret, webhook } = hooks[n % hooks.length]!;
      const body =
        n % 5 === 0
          ? Buffer.from(JSON.stringify({ n, text: randomBytes(randomInt(200)).toString("base64") }))
          : randomBytes(randomInt(300));
      const isRight = n % 7 !== 0;
      const given = isRight ? secret : randomUUID();
      const junk = Object.fromEntries(
        Array.from({ length: randomInt(4) }, () => [
          `x-${randomBytes(3).toString("hex")}`,
          randomBytes(randomInt(60))
            .toString("latin1")
            .replaceAll(/[^\x20-\x7e\x80-\xff]/g, ""),
        ]),
      );
      const headers = { ...junk, "x-forwarded-for": `10.${n % 250}.${Math.floor(n / 250)}.1` };
      const sent =
        webhook.authMode === "token"
          ? { headers: { ...headers, ...bearer(given) } }
          : webhook.authMode === "url_token"
            ? { headers, token: given }
            : {
                headers: {
                  ...headers,
                  "x-hub-signature-256": `sha256=${createHmac("sha256", given).update(body).digest("hex")}`,
                  "x-github-delivery": String(n),
                },
              };
      const { status } = await w.send(uid, { ...sent, body });
      expect([n, status]).toEqual([n, !isRight ? 401 : isJsonText(body) ? 202 : 400]);
    }
  };
  await Promise.all([0, 1, 2, 3].map(work));
  expect(w.log.entries.filter(({ level }) => level === "error")).toEqual([]);
});
