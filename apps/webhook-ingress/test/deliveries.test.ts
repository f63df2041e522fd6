import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createHash } from "node:crypto";
import { call } from "@millwright/rpc";
import { bearer, OWNER, startWorld, type World } from "./setup.ts";

let w: World;
beforeAll(async () => void (w = await startWorld()));
afterAll(() => w?.stop());

const problem = (status: number, reason: string) => ({
  status,
  body: {
    status,
    reason,
    type: expect.stringContaining("https://mill.test/errors/"),
    retryable: status === 429,
    trace_id: expect.any(String),
  },
});
const hashOf = (body: string) => `sha256:${createHash("sha256").update(body).digest("hex")}`;

describe("a bearer token", () => {
  test("accepts any JSON value, whatever the content type, and returns its identity", async () => {
    const { uid, secret } = await w.aWebhook();
    for (const body of ['{"a":1}', "[]", '"text"', "1", "null", " true ", '{"a":1,"a":2}', '"\\ud800"']) {
      expect(await w.send(uid, { headers: bearer(secret, { "content-type": "text/html" }), body })).toMatchObject({
        status: 202,
        body: { delivery_id: hashOf(body) },
      });
    }
    expect(await w.send(uid, { headers: { authorization: `bEARER ${secret}` }, body: "2" })).toMatchObject({
      status: 202,
    });
    expect((await w.logOf(uid))[0]).toEqual(["accepted", hashOf("2"), 1]);
  });
  test.each<[string, (secret: string) => { headers?: Record<string, string>; token?: string }]>([
    ["is missing", () => ({})],
    ["is wrong", () => ({ headers: bearer("wrong") })],
    ["is truncated", (secret) => ({ headers: bearer(secret.slice(1)) })],
    ["is in the path", (secret) => ({ token: secret })],
    ["is in the path as well", (secret) => ({ token: secret, headers: bearer(secret) })],
    ["comes with another scheme", (secret) => ({ headers: { authorization: `Basic ${secret}` } })],
    ["is empty", () => ({ headers: { authorization: "Bearer " } })],
  ])("that %s is 401 and logged without its payload", async (_what, how) => {
    const { uid, secret } = await w.aWebhook();
    expect(await w.send(uid, { ...how(secret), body: "not json" })).toMatchObject(
      problem(401, "webhook_authentication_failed"),
    );
    expect(await w.logOf(uid)).toEqual([["rejected_auth", "", 8]]);
    expect(await w.rows("SELECT payload FROM deliveries WHERE webhook_uid = $1", [uid])).toEqual([{ payload: null }]);
  });
});

describe("a url_token", () => {
  test("is one more segment of the path, percent-encoded or not; a trailing slash and a query are ignored", async () => {
    const { uid, secret, webhook } = await w.aWebhook({ authMode: "url_token" });
    expect(webhook.ingressUrl).toBe(`https://hooks.test/webhooks/w/${uid}/${secret}`);
    const encoded = secret.replaceAll(/./g, (letter) => `%${letter.codePointAt(0)!.toString(16)}`);
    for (const [n, token] of [secret, `${secret}/`, `${secret}?x=1`, encoded].entries())
      expect(await w.send(uid, { token, body: String(n) })).toMatchObject({ status: 202 });
    expect((await w.client.getWebhook({ webhookUid: uid }, call(OWNER))).webhook!.ingressUrl).toBe(
      `https://hooks.test/webhooks/w/${uid}/{token}`,
    );
  });
  test("is the only credential: no segment, a wrong one, a malformed one, or a bearer token is 401", async () => {
    const { uid, secret } = await w.aWebhook({ authMode: "url_token" });
    for (const sent of [{}, { token: "wrong" }, { token: "%zz" }, { headers: bearer(secret) }, { token: "%2e" }])
      expect(await w.send(uid, sent)).toMatchObject(problem(401, "webhook_authentication_failed"));
  });
  test("appears in no log line and no problem", async () => {
    const { uid, secret } = await w.aWebhook({ authMode: "url_token" });
    await w.send(uid, { token: secret });
    const { body } = await w.send(uid, { token: `${secret}x` });
    await w.send(uid, { token: `${secret}/more/segments` });
    expect(body.instance).toBe(`/webhooks/w/${uid}`);
    expect(JSON.stringify([body, w.log.entries])).not.toContain(secret);
  });
});

describe("webhooks that cannot receive deliveries", () => {
  test("unknown, malformed, disabled and deleted webhooks return the same 404 and log nothing", async () => {
    const { uid, factoryUid, secret } = await w.aWebhook();
    const unknown = await w.send("0199a000-0000-7000-8000-00000000dead", { headers: bearer(secret) });
    expect(unknown).toMatchObject(problem(404, "webhook_not_found"));
    const same = ({ status, body }: { status: number; body: any }) => ({
      status,
      body: { ...body, trace_id: "", instance: "" },
    });
    expect(same(await w.send("nonsense", { headers: bearer(secret) }))).toEqual(same(unknown));
    await w.client.replaceWebhook({ webhookUid: uid, name: "hook", enabled: false }, call(OWNER));
    expect(same(await w.send(uid, { headers: bearer(secret) }))).toEqual(same(unknown));
    await w.client.replaceWebhook({ webhookUid: uid, name: "hook", enabled: true }, call(OWNER));
    expect(await w.send(uid, { headers: bearer(secret) })).toMatchObject({ status: 202 });
    expect(await w.logOf(uid)).toHaveLength(1);
    await w.client.deleteWebhook({ factoryUid, webhookUid: uid }, call(OWNER));
    expect(same(await w.send(uid, { headers: bearer(secret) }))).toEqual(same(unknown));
    expect(await w.rows("SELECT outcome FROM deliveries WHERE webhook_uid = $1", [uid])).toEqual([
      { outcome: "accepted" },
    ]);
    expect(await w.rows("SELECT secret_sealed FROM webhooks WHERE uid = $1", [uid])).toEqual([{ secret_sealed: null }]);
  });
  test("a change through one replica applies at once at another that has cached the webhook", async () => {
    const other = await w.replica();
    const { uid, secret, factoryUid } = await w.aWebhook({
      authMode: "signature",
      signatureScheme: "gitlab",
      secret: "first",
    });
    const send = async (token: string, id: string) =>
      (await w.send(uid, { headers: { "x-gitlab-token": token, "x-own": id, "x-service-delivery-id": id } }, other.url))
        .body.delivery_id ?? 0;
    expect(await send(secret, "1")).toBe("1");
    await w.client.rotateSecret({ webhookUid: uid, secret: "second" }, call(OWNER));
    expect([await send("first", "2"), await send("second", "3")]).toEqual([0, "3"]);
    await w.client.replaceWebhook(
      { webhookUid: uid, name: "hook", enabled: true, deliveryIdHeader: "X-Own" },
      call(OWNER),
    );
    expect(await send("second", "4")).toBe("4");
    expect(
      await w.rows("SELECT dedupe_kind FROM deliveries WHERE webhook_uid = $1 AND dedupe_key = '4'", [uid]),
    ).toEqual([{ dedupe_kind: "configured" }]);
    await w.client.replaceWebhook({ webhookUid: uid, name: "hook", enabled: false }, call(OWNER));
    expect((await w.send(uid, { headers: { "x-gitlab-token": "second" } }, other.url)).status).toBe(404);
    await w.client.replaceWebhook({ webhookUid: uid, name: "hook", enabled: true }, call(OWNER));
    expect(await send("second", "5")).toBe("5");
    await w.client.deleteWebhook({ factoryUid, webhookUid: uid }, call(OWNER));
    expect((await w.send(uid, { headers: { "x-gitlab-token": "second" } }, other.url)).status).toBe(404);
  });
  test.each(["GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])(
    "%s is 405 with Allow: POST, for existing and absent webhooks",
    async (method) => {
      const { uid } = await w.aWebhook();
      for (const address of [uid, "nonsense"]) {
        const { status, headers } = await w.send(address, { method });
        expect([status, headers.get("allow")]).toEqual([405, "POST"]);
      }
    },
  );
  test("other paths below /webhooks/ are 404", async () => {
    for (const path of [
      "/webhooks/",
      "/webhooks/w",
      "/webhooks/w/",
      "/webhooks/x/1",
      "/webhooks/w/1/2/3",
      "/webhooks/w//x",
    ])
      expect((await fetch(w.url + path, { method: "POST" })).status).toBe(404);
  });
});

describe("the body", () => {
  test.each([
    ["an empty body", ""],
    ["an extra comma", "[1,]"],
    ["text", "hello"],
    ["two values", "{}{}"],
    ["a byte order mark", "\ufeff{}"],
    ["invalid UTF-8", Buffer.from([0x22, 0xc3, 0x28, 0x22])],
  ])("%s is not JSON: 400, logged with id and size, and no identity is claimed", async (_what, body) => {
    const { uid, secret } = await w.aWebhook();
    const headers = bearer(secret, { "x-service-delivery-id": "d-1" });
    expect(await w.send(uid, { headers, body })).toMatchObject(problem(400, "malformed_json"));
    expect(await w.send(uid, { headers, body: "{}" })).toMatchObject({ status: 202, body: { delivery_id: "d-1" } });
    expect(await w.logOf(uid)).toEqual([
      ["accepted", "d-1", 2],
      ["rejected_invalid_json", "d-1", Buffer.byteLength(body)],
    ]);
  });
  test("a compressed body is rejected as not JSON and is not inflated", async () => {
    const { uid, secret } = await w.aWebhook();
    expect(await w.send(uid, { headers: bearer(secret, { "content-encoding": "gzip" }) })).toMatchObject(
      problem(400, "malformed_json"),
    );
    expect(await w.send(uid, { headers: bearer(secret, { "content-encoding": "identity" }) })).toMatchObject({
      status: 202,
    });
  });
  test.each([1, 2, 262_143, 262_144])("of %i bytes is accepted and stored byte for byte", async (size) => {
    const { uid, secret } = await w.aWebhook();
    const body = size === 1 ? "1" : `"${"é".repeat((size - 2) / 2)}${size % 2 === 1 ? "x" : ""}"`;
    expect(Buffer.byteLength(body)).toBe(size);
    expect(await w.send(uid, { headers: bearer(secret), body })).toMatchObject({ status: 202 });
    const { deliveries } = await w.client.listDeliveries({ webhookUid: uid }, call(OWNER));
    const { payload } = await w.client.getDelivery({ webhookUid: uid, deliveryUid: deliveries[0]!.uid }, call(OWNER));
    expect(Buffer.from(payload!).equals(Buffer.from(body))).toBe(true);
    expect(Number(deliveries[0]!.sizeBytes)).toBe(size);
  });
  test("of one byte more than 256 KB is 413, declared or not, and logged with its size", async () => {
    const { uid, secret } = await w.aWebhook();
    const body = `"${"x".repeat(262_143)}"`;
    expect(await w.send(uid, { headers: bearer(secret), body })).toMatchObject(problem(413, "body_too_large"));
    const chunked = await fetch(`${w.url}/webhooks/w/${uid}`, {
      method: "POST",
      headers: bearer(secret, { "x-service-delivery-id": "large" }),
      body: new Blob([body]).stream(),
      duplex: "half",
    });
    expect(chunked.status).toBe(413);
    expect(await w.send(uid, { headers: bearer(secret), body: `"${"x".repeat(1_500_000)}"` })).toMatchObject(
      problem(413, "body_too_large"),
    );
    const sizes = (await w.logOf(uid)).map(([outcome, id, size]) => [outcome, id, size > 262_144]);
    expect(sizes).toEqual(["", "large", ""].map((id) => ["rejected_too_large", id, true]));
  });
  test("of 131,072 nested lists is accepted like any JSON", async () => {
    const { uid, secret } = await w.aWebhook();
    expect(
      await w.send(uid, { headers: bearer(secret), body: "[".repeat(131_072) + "]".repeat(131_072) }),
    ).toMatchObject({ status: 202 });
  });
});

describe("identity", () => {
  const accepted = async (uid: string, headers: Record<string, string>, body = "{}") => {
    const response = await w.send(uid, { headers, body });
    return [response.status, response.body.delivery_id];
  };
  test("is from the configured header, else the sender's header, else the hash of the body", async () => {
    const { uid, secret } = await w.aWebhook({ deliveryIdHeader: "X-Event" });
    expect(await accepted(uid, bearer(secret, { "x-event": " e1 ", "x-service-delivery-id": "s1" }))).toEqual([
      202,
      "e1",
    ]);
    expect(await accepted(uid, bearer(secret, { "x-event": "", "x-service-delivery-id": "s1" }))).toEqual([202, "s1"]);
    expect(await accepted(uid, bearer(secret, { "x-warp-delivery-id": "p1" }))).toEqual([202, "p1"]);
    expect(await accepted(uid, bearer(secret))).toEqual([202, hashOf("{}")]);
  });
  /** Encodes UTF-8 as a server reads header bytes: one character each. */
  const sent = (text: string) => Buffer.from(text, "utf8").toString("latin1");
  test.each<[string, string, string]>([
    ["has spaces", "build 7 of main", "build 7 of main"],
    ["has 256 characters", "x".repeat(256), "x".repeat(256)],
    ["is not ASCII", sent("Größe à 7 💥"), "Größe à 7 💥"],
    ["has more than 256 bytes", sent("é".repeat(129)), hashOf("é".repeat(129))],
    [
      "is not UTF-8",
      "caf\u00e9",
      `sha256:${createHash("sha256").update(Buffer.from("caf\u00e9", "latin1")).digest("hex")}`,
    ],
    ["contains a bidirectional override", sent("a\u202eb"), hashOf("a\u202eb")],
  ])("in a configured header that %s is an identity, whatever the body", async (_what, id, shown) => {
    const { uid, secret } = await w.aWebhook({ deliveryIdHeader: "X-Event" });
    for (const name of ["x-event", "x-service-delivery-id"]) {
      expect(await accepted(uid, bearer(secret, { [name]: id }), "1")).toEqual([202, shown]);
      expect(await accepted(uid, bearer(secret, { [name]: id }), "2")).toEqual([202, shown]);
    }
    expect((await w.logOf(uid)).map(([outcome]) => outcome)).toEqual([
      "duplicate",
      "accepted",
      "duplicate",
      "accepted",
    ]);
  });
  test("distinguishes similar ids with the same body", async () => {
    const { uid, secret } = await w.aWebhook({ deliveryIdHeader: "X-Event" });
    const long = "x".repeat(300);
    const ids = [
      "a b",
      "a  b",
      "ab",
      long,
      `${long}y`,
      hashOf(long),
      sent("à"),
      "\u00c3",
      sent("é"),
      "\u00e9",
      sent("e\u0301"),
    ];
    for (const id of ids) expect((await accepted(uid, bearer(secret, { "x-event": id }), "7"))[0]).toBe(202);
    expect((await w.logOf(uid)).map(([outcome]) => outcome)).toEqual(Array(ids.length).fill("accepted"));
  });
  test("treats a blank header as absent", async () => {
    const { uid, secret } = await w.aWebhook({ deliveryIdHeader: "X-Event" });
    expect(await accepted(uid, bearer(secret, { "x-event": "   " }))).toEqual([202, hashOf("{}")]);
  });
  test("uses a provider's own header only if the delivery is signed", async () => {
    const { uid, secret } = await w.aWebhook();
    expect(await accepted(uid, bearer(secret, { "x-github-delivery": "g1", "webhook-id": "m1" }))).toEqual([
      202,
      hashOf("{}"),
    ]);
  });
  test("seen again is a duplicate: 202 with the same id, and only a log entry, whatever the body", async () => {
    const { uid, secret } = await w.aWebhook();
    const headers = bearer(secret, { "x-service-delivery-id": "same" });
    expect(await accepted(uid, headers, "1")).toEqual([202, "same"]);
    expect(await accepted(uid, headers, "2")).toEqual([202, "same"]);
    expect(await w.logOf(uid)).toEqual([
      ["duplicate", "same", 1],
      ["accepted", "same", 1],
    ]);
    const stored = await w.rows("SELECT type FROM stream.event_pending WHERE payload->>'webhook_uid' = $1", [uid]);
    expect(stored).toEqual([{ type: "millwright.delivery.accepted.v1" }]);
  });
  test("of a header never equals the hash of a body, and is separate per webhook", async () => {
    const { uid, secret } = await w.aWebhook();
    const other = await w.aWebhook();
    expect(await accepted(uid, bearer(secret, { "x-service-delivery-id": hashOf("1") }))).toEqual([202, hashOf("1")]);
    expect(await accepted(uid, bearer(secret), "1")).toEqual([202, hashOf("1")]);
    expect(await accepted(other.uid, bearer(other.secret), "1")).toEqual([202, hashOf("1")]);
    expect((await w.logOf(uid)).map(([outcome]) => outcome)).toEqual(["accepted", "accepted"]);
  });
  test("is not claimed by a rejected attempt", async () => {
    const { uid, secret } = await w.aWebhook();
    expect(await w.send(uid, { headers: { "x-service-delivery-id": "mine" } })).toMatchObject({ status: 401 });
    expect(await accepted(uid, bearer(secret, { "x-service-delivery-id": "mine" }))).toEqual([202, "mine"]);
  });
  test("is accepted once of 48 concurrent copies at three replicas", async () => {
    const replicas = [w.url, (await w.replica()).url, (await w.replica()).url];
    const hooks = await Promise.all(
      Array.from({ length: Number(process.env["MILLWRIGHT_IDENTITIES"] ?? 20) }, () => w.aWebhook()),
    );
    for (const { uid, secret } of hooks) {
      const responses = await Promise.all(
        Array.from({ length: 48 }, (_, n) =>
          w.send(uid, { headers: bearer(secret, { "x-service-delivery-id": "copy" }) }, replicas[n % 3]),
        ),
      );
      expect(responses.map(({ status, body }) => [status, body.delivery_id])).toEqual(Array(48).fill([202, "copy"]));
      const outcomes = (await w.logOf(uid)).map(([outcome]) => outcome).toSorted();
      expect(outcomes).toEqual(["accepted", ...Array(47).fill("duplicate")]);
    }
  });
});
