import { createHmac, randomBytes, randomInt } from "node:crypto";
import { request } from "node:http";
import { sign as signForGitHub } from "@octokit/webhooks-methods";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { serviceCaller } from "@millwright/caller";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { codeHostsOf, example, hmac, type CodeHosts } from "./code-host-setup.ts";
import { isJsonText } from "./fuzz.ts";
import { BASE, MEMBER, NOW, OTHER_TEAM, OWNER, startWorld, OTHER_TEAM_OWNER, TEAM, type World } from "./setup.ts";

let w: World;
let hosts: CodeHosts;
beforeAll(async () => {
  w = await startWorld({ trustedProxies: ["127.0.0.1"] });
  hosts = codeHostsOf(w);
});
afterAll(() => w?.stop());
beforeEach(() => w.clock.set(NOW));

/** Sends a request that declares the size of its body without a body; returns the status. */
const declareBody = (uid: string, bytes: number) =>
  new Promise<number | undefined>((resolve, reject) => {
    const input = request(
      `${w.url}/webhooks/c/${uid}`,
      { method: "POST", headers: { "content-length": bytes } },
      (response) => {
        resolve(response.statusCode);
        input.destroy();
      },
    );
    input.on("error", reject).flushHeaders();
  });
const factories = () => call(serviceCaller("factories", newUid()));
const refused = (reason: string) => expect.objectContaining({ reason });

describe("the address of a connection", () => {
  test("is opened with a secret that is shown once, and a change of settings does not change the secret", async () => {
    const ref = { teamUid: TEAM, codeHostUid: newUid() };
    const opened = await hosts.client.putCodeHostWebhook(
      { ...ref, provider: "github", botLogin: "mill[bot]", enabled: true },
      call(OWNER),
    );
    expect(opened.webhook).toMatchObject({
      ...ref,
      provider: "github",
      botLogin: "mill[bot]",
      enabled: true,
      ingressUrl: `${BASE}/webhooks/c/${ref.codeHostUid}`,
    });
    expect(opened.secret).toMatch(/^[\w-]{43}$/);
    const unchanged = await hosts.client.putCodeHostWebhook({ ...ref, provider: "github" }, call(OWNER));
    expect(unchanged.webhook).toMatchObject({ botLogin: "mill[bot]", enabled: true });
    const changed = await hosts.client.putCodeHostWebhook({ ...ref, provider: "github", botLogin: "" }, call(OWNER));
    expect([changed.secret, changed.webhook?.botLogin, changed.webhook?.createdAt]).toEqual([
      "",
      "",
      opened.webhook?.createdAt,
    ]);
    expect((await hosts.github(ref.codeHostUid, opened.secret)).status).toBe(202);
    expect((await hosts.client.getCodeHostWebhook(ref, call(OWNER))).webhook?.lastDeliveryAt).toBeDefined();
  });
  test("applies a new secret at once, generated or supplied, and rejects the old one", async () => {
    const { uid, secret, ref } = await hosts.open();
    const { secret: second } = await hosts.client.rotateCodeHostSecret(ref, call(OWNER));
    expect([(await hosts.github(uid, secret)).status, (await hosts.github(uid, second)).status]).toEqual([401, 202]);
    expect((await hosts.client.rotateCodeHostSecret({ ...ref, secret: "their own" }, call(OWNER))).secret).toBe("");
    expect([(await hosts.github(uid, second)).status, (await hosts.github(uid, "their own")).status]).toEqual([
      401, 202,
    ]);
    for (const bad of ["caf\u00e9", " x", "a\nb", "x".repeat(4_097)])
      await expect(hosts.client.rotateCodeHostSecret({ ...ref, secret: bad }, call(OWNER))).rejects.toEqual(
        refused("invalid_secret"),
      );
  });
  test("returns the same 404 while it is disabled, closed, or never opened", async () => {
    const { uid, secret, ref } = await hosts.open();
    await hosts.client.putCodeHostWebhook({ ...ref, provider: "github", enabled: false }, call(OWNER));
    await hosts.client.putCodeHostWebhook({ ...ref, provider: "github", botLogin: "mill" }, call(OWNER)); // enables nothing
    const disabled = await hosts.github(uid, secret);
    await hosts.client.putCodeHostWebhook({ ...ref, provider: "github", enabled: true }, call(OWNER));
    expect((await hosts.github(uid, secret)).status).toBe(202);
    await hosts.client.deleteCodeHostWebhook(ref, call(OWNER));
    const [closed, absent, webhook] = [
      await hosts.github(uid, secret),
      await hosts.github(newUid(), secret),
      await w.send(uid, { body: "{}" }),
    ];
    const shown = ({ status, body }: { status: number; body: { detail: string; reason: string } }) => [
      status,
      body.reason,
      body.detail,
    ];
    expect([disabled, closed, absent, webhook].map(shown)).toEqual(Array(4).fill(shown(absent)));
    expect(absent.status).toBe(404);
    await expect(hosts.client.getCodeHostWebhook(ref, call(OWNER))).rejects.toEqual(
      refused("code_host_webhook_not_found"),
    );
  });
  test("can be opened again with another secret, but not after its connection was removed", async () => {
    const { uid, secret, ref } = await hosts.open();
    await hosts.client.deleteCodeHostWebhook(ref, call(OWNER));
    const again = await hosts.client.putCodeHostWebhook({ ...ref, provider: "github", enabled: true }, call(OWNER));
    expect([(await hosts.github(uid, secret)).status, (await hosts.github(uid, again.secret)).status]).toEqual([
      401, 202,
    ]);
    await hosts.client.removeCodeHost(ref, call(OWNER));
    await hosts.client.removeCodeHost(ref, call(OWNER)); // idempotent
    expect((await hosts.github(uid, again.secret)).status).toBe(404);
    const neverOpened = { teamUid: TEAM, codeHostUid: newUid() };
    await hosts.client.removeCodeHost(neverOpened, call(OWNER));
    for (const removed of [ref, neverOpened])
      await expect(
        hosts.client.putCodeHostWebhook({ ...removed, provider: "github", enabled: true }, call(OWNER)),
      ).rejects.toEqual(refused("code_host_not_found"));
  });
  test("is not found for other teams, refused to members without the right, and cannot be taken over", async () => {
    const { uid, secret, ref } = await hosts.open();
    await hosts.github(uid, secret);
    const deliveryUid = (await hosts.logOf(uid))[0]!.uid;
    const calls = (named: { teamUid: string; codeHostUid: string }, as: typeof OWNER) => [
      hosts.client.getCodeHostWebhook(named, call(as)),
      hosts.client.rotateCodeHostSecret(named, call(as)),
      hosts.client.deleteCodeHostWebhook(named, call(as)),
      hosts.client.listCodeHostDeliveries(named, call(as)),
      hosts.client.getCodeHostDelivery({ ...named, deliveryUid }, call(as)),
    ];
    const reasons = async (named: { teamUid: string; codeHostUid: string }, as: typeof OWNER) =>
      (await Promise.allSettled(calls(named, as))).map((result) =>
        result.status === "rejected" ? (result.reason as { reason: string }).reason : "returned",
      );
    expect(await reasons(ref, OTHER_TEAM_OWNER)).toEqual(Array(5).fill("code_host_not_found"));
    expect(await reasons({ ...ref, teamUid: OTHER_TEAM }, OTHER_TEAM_OWNER)).toEqual(
      Array(5).fill("code_host_webhook_not_found"),
    );
    expect(await reasons({ teamUid: OTHER_TEAM, codeHostUid: newUid() }, OTHER_TEAM_OWNER)).toEqual(
      Array(5).fill("code_host_webhook_not_found"),
    );
    expect(await reasons({ teamUid: TEAM, codeHostUid: "nonsense" }, OWNER)).toEqual(
      Array(5).fill("code_host_webhook_not_found"),
    );
    expect(await reasons(ref, MEMBER)).toEqual(Array(5).fill("not_authorized"));
    const put = { provider: "github", enabled: true };
    await expect(hosts.client.putCodeHostWebhook({ ...ref, ...put }, call(OTHER_TEAM_OWNER))).rejects.toEqual(
      refused("code_host_not_found"),
    );
    await expect(
      hosts.client.putCodeHostWebhook({ ...ref, ...put, teamUid: OTHER_TEAM }, call(OTHER_TEAM_OWNER)),
    ).rejects.toEqual(refused("code_host_not_found"));
    await expect(hosts.client.removeCodeHost({ ...ref, teamUid: OTHER_TEAM }, call(OTHER_TEAM_OWNER))).rejects.toEqual(
      refused("code_host_not_found"),
    );
    expect((await hosts.github(uid, secret)).status).toBe(202);
  });
  test("rejects an unknown provider and invalid account names", async () => {
    const ref = { teamUid: TEAM, codeHostUid: newUid(), enabled: true };
    for (const bad of [
      { provider: "local" },
      { provider: "github", botLogin: "@mill" },
      { provider: "github", botLogin: "a b" },
    ])
      await expect(hosts.client.putCodeHostWebhook({ ...ref, ...bad }, call(OWNER))).rejects.toEqual(
        refused("invalid_code_host_webhook"),
      );
  });
  test("publishes events without its secret", async () => {
    const { uid, secret, ref } = await hosts.open();
    await hosts.client.rotateCodeHostSecret({ ...ref, secret: "their own" }, call(OWNER));
    await hosts.client.deleteCodeHostWebhook(ref, call(OWNER));
    const events = await hosts.eventsOf(uid);
    expect(events.map(({ type, payload }) => [type, payload["secret_changed"]])).toEqual([
      ["millwright.code_host_webhook.created.v1", undefined],
      ["millwright.code_host_webhook.updated.v1", true],
      ["millwright.code_host_webhook.deleted.v1", undefined],
    ]);
    expect(JSON.stringify(await w.rows("SELECT * FROM stream.event_pending"))).not.toMatch(
      new RegExp(`${secret}|their own`),
    );
    expect(JSON.stringify(await w.rows("SELECT * FROM code_host_webhooks"))).not.toMatch(
      new RegExp(`${secret}|their own`),
    );
  });
});

describe("a delivery of GitHub, signed by @octokit/webhooks-methods", () => {
  test("is accepted, published once, and returned byte for byte with identifying headers but no credential", async () => {
    const { uid, secret } = await hosts.open("github", { botLogin: "mill[bot]" });
    const id = newUid();
    expect(await hosts.github(uid, secret, { id, event: "pull_request", body: example("pull_request") })).toMatchObject(
      { status: 202, body: { delivery_id: id } },
    );
    const [entry] = await hosts.logOf(uid);
    expect(entry).toMatchObject({
      codeHostUid: uid,
      teamUid: TEAM,
      provider: "github",
      event: "pull_request",
      deliveryId: id,
      outcome: "accepted",
      sizeBytes: BigInt(Buffer.byteLength(example("pull_request"))),
    });
    expect(entry!.action).toBe((JSON.parse(example("pull_request")) as { action: string }).action);
    const read = await hosts.client.getCodeHostDelivery({ deliveryUid: entry!.uid }, factories());
    expect(Buffer.from(read.body!).toString("utf8")).toBe(example("pull_request"));
    expect([read.headers, read.botLogin]).toEqual([
      {
        "content-type": "application/json",
        "user-agent": "GitHub-Hookshot/044aadd",
        "x-github-event": "pull_request",
        "x-github-delivery": id,
      },
      "mill[bot]",
    ]);
    const accepted = (await hosts.eventsOf(uid)).filter(
      ({ type }) => type === "millwright.code_host_delivery.accepted.v1",
    );
    expect(accepted).toEqual([
      {
        type: "millwright.code_host_delivery.accepted.v1",
        entity_uid: entry!.uid,
        payload: {
          code_host_uid: uid,
          provider: "github",
          event: "pull_request",
          delivery_id: id,
          size_bytes: Number(entry!.sizeBytes),
        },
      },
    ]);
  });
  test("is a duplicate when GitHub sends it again; of 48 concurrent copies at three replicas one is accepted", async () => {
    const replicas = [w.url, (await w.replica()).url, (await w.replica()).url];
    const { uid, secret } = await hosts.open();
    const responses = await Promise.all(
      Array.from({ length: 48 }, (_, n) => hosts.github(uid, secret, { id: "copy", to: replicas[n % 3]! })),
    );
    expect(responses.map(({ status, body }) => [status, body.delivery_id])).toEqual(Array(48).fill([202, "copy"]));
    expect(await hosts.github(uid, secret, { id: "copy" })).toMatchObject({
      status: 202,
      body: { delivery_id: "copy" },
    });
    expect((await hosts.outcomesOf(uid)).toSorted()).toEqual(["accepted", ...Array(48).fill("duplicate")]);
    expect((await hosts.eventsOf(uid)).filter(({ type }) => type.includes("delivery"))).toHaveLength(1);
  });
  test("is accepted as a ping, and as a form", async () => {
    const { uid, secret } = await hosts.open();
    expect((await hosts.github(uid, secret, { event: "ping", body: example("ping") })).status).toBe(202);
    const form = new URLSearchParams({ payload: example("issues") }).toString();
    expect(
      (
        await hosts.github(uid, secret, {
          event: "issues",
          body: form,
          headers: { "content-type": "application/x-www-form-urlencoded" },
        })
      ).status,
    ).toBe(202);
    const [issues] = await hosts.logOf(uid);
    const read = await hosts.client.getCodeHostDelivery({ deliveryUid: issues!.uid }, factories());
    expect([issues!.action, Buffer.from(read.body!).toString("utf8")]).toEqual([
      (JSON.parse(example("issues")) as { action: string }).action,
      form,
    ]);
  });
  test("is rejected with another secret, another body, no signature, a SHA-1 signature, or a bearer token", async () => {
    const { uid, secret } = await hosts.open();
    const body = example("push");
    const old = `sha1=${createHmac("sha1", secret).update(body).digest("hex")}`;
    const responses = [
      await hosts.github(uid, "another"),
      await hosts.github(uid, secret, { headers: { "x-hub-signature-256": hmac(secret, `${body} `) } }),
      await hosts.post(uid, {}, body),
      await hosts.post(uid, { "x-hub-signature": old }, body),
      await hosts.post(uid, { authorization: `Bearer ${secret}`, "x-gitlab-token": secret }, body),
    ];
    expect(responses.map(({ status }) => status)).toEqual([401, 401, 401, 401, 401]);
    expect(await hosts.outcomesOf(uid)).toEqual(Array(5).fill("rejected_auth"));
    expect((await hosts.github(uid, secret)).status).toBe(202); // rejected attempts claim no identity
  });
  test("that is not JSON, or compressed, is rejected and logged without its bytes; it is not parsed before its signature is verified", async () => {
    const { uid, secret } = await hosts.open();
    expect((await hosts.github(uid, secret, { body: "no json" })).status).toBe(400);
    expect((await hosts.github(uid, secret, { headers: { "content-encoding": "gzip" } })).status).toBe(400);
    expect(
      (
        await hosts.github(uid, secret, {
          body: "payload=no",
          headers: { "content-type": "application/x-www-form-urlencoded" },
        })
      ).status,
    ).toBe(400);
    expect((await hosts.github(uid, "wrong", { body: "no json" })).status).toBe(401);
    const log = await hosts.logOf(uid);
    expect(log.map(({ outcome }) => outcome)).toEqual(["rejected_auth", ...Array(3).fill("rejected_invalid_json")]);
    expect((await hosts.client.getCodeHostDelivery({ deliveryUid: log[1]!.uid }, factories())).body).toBeUndefined();
  });
  test("may be larger than a webhook's, and is 413 beyond GitHub's own limit", async () => {
    const { uid, secret } = await hosts.open();
    const large = JSON.stringify({ text: "x".repeat(1_000_000) });
    expect((await hosts.github(uid, secret, { body: large })).status).toBe(202);
    expect(await declareBody(uid, 25 * 1024 * 1024 + 1)).toBe(413);
    expect(await hosts.outcomesOf(uid)).toEqual(["rejected_too_large", "accepted"]);
  });
  test("is accepted only by POST at exactly this address", async () => {
    const { uid, secret } = await hosts.open();
    const at = (path: string, method = "POST") => fetch(`${w.url}${path}`, { method }).then(({ status }) => status);
    expect([
      await at(`/webhooks/c/${uid}`, "GET"),
      await at(`/webhooks/c/${uid}/${secret}`),
      await at("/webhooks/c/"),
      await at("/webhooks/c/nonsense"),
      await at(`/webhooks/w/${uid}`),
    ]).toEqual([405, 404, 404, 404, 404]);
    expect((await hosts.github(`${uid.toUpperCase()}/`, secret)).status).toBe(202);
  });
});

describe("a delivery of GitLab", () => {
  test("is accepted by its complete token and deduplicated by its idempotency key", async () => {
    const { uid, secret } = await hosts.open("gitlab");
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    const send = (key: string, body?: string) =>
      hosts.gitlab(uid, secret, {
        headers: { "idempotency-key": key, "x-gitlab-event-uuid": "e1", "x-gitlab-webhook-uuid": "h1" },
        ...(body && { body }),
      });
    expect([await send("k1"), await send("k1", "{}"), await send("k2")]).toMatchObject([
      { status: 202, body: { delivery_id: "k1" } },
      { status: 202, body: { delivery_id: "k1" } },
      { status: 202, body: { delivery_id: "k2" } },
    ]);
    expect(await hosts.outcomesOf(uid)).toEqual(["accepted", "duplicate", "accepted"]);
    for (const wrong of ["", secret.slice(0, -1), `${secret}x`, secret.toUpperCase()])
      expect((await hosts.gitlab(uid, wrong)).status).toBe(401);
  });
  test("of an older GitLab is deduplicated by its event and bytes, or by its bytes alone", async () => {
    const { uid, secret } = await hosts.open("gitlab");
    const send = (uuid: string | undefined, body: string) =>
      hosts.gitlab(uid, secret, { headers: uuid === undefined ? {} : { "x-gitlab-event-uuid": uuid }, body });
    for (const [uuid, body] of [
      ["e1", "1"],
      ["e1", "1"],
      ["e1", "2"],
      ["e2", "1"],
      [undefined, "1"],
      [undefined, "1"],
    ] as const)
      expect((await send(uuid, body)).status).toBe(202);
    expect((await hosts.outcomesOf(uid)).toReversed()).toEqual([
      "accepted",
      "duplicate",
      "accepted",
      "accepted",
      "accepted",
      "duplicate",
    ]);
  });
  test("with a wrong token is rejected before its body is read", async () => {
    const { uid } = await hosts.open("gitlab");
    for (const body of ["no json", `"${"x".repeat(400_000)}"`])
      expect((await hosts.gitlab(uid, "wrong", { body })).status).toBe(401);
  });
  test("that is signed is authenticated only by its signature, for five minutes", async () => {
    const { uid, secret, ref } = await hosts.open("gitlab");
    const body = '{"object_kind":"merge_request","object_attributes":{"action":"open"}}';
    const signed = (key: string, seconds = 0, more: Record<string, string> = {}) => {
      const at = new Date(NOW.getTime() + seconds * 1000);
      return hosts.post(
        uid,
        {
          "x-gitlab-event": "Merge Request Hook",
          "idempotency-key": `k${seconds}`,
          "webhook-id": `k${seconds}`,
          "webhook-timestamp": String(at.getTime() / 1000),
          "webhook-signature": new StandardWebhook(key).sign(`k${seconds}`, at, body),
          ...more,
        },
        body,
      );
    };
    expect([
      (await signed(secret)).status,
      (await signed(secret, -299)).status,
      (await signed(secret, -301)).status,
      (await signed(secret, 301)).status,
    ]).toEqual([202, 202, 401, 401]);
    const other = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    expect((await signed(other, 1, { "x-gitlab-token": secret })).status).toBe(401);
    expect((await hosts.logOf(uid)).at(-1)).toMatchObject({
      event: "Merge Request Hook",
      action: "open",
      deliveryId: "k0",
    });
    await hosts.client.rotateCodeHostSecret({ ...ref, secret: "a plain token" }, call(OWNER)); // cannot sign
    expect([(await hosts.gitlab(uid, "a plain token")).status, (await signed(secret, 2)).status]).toEqual([202, 401]);
  });
});

describe("budgets", () => {
  /** Sets the number of hits of the deliveries' budget at the current time. */
  const used = (uid: string, hits: number) =>
    w.rows(
      "INSERT INTO rate_windows (receiver_uid, bucket, hits) VALUES ($1, 'deliveries', array_fill($2::timestamptz, ARRAY[$3::integer]))",
      [uid, w.clock.now(), hits],
    );

  test("accept 600 deliveries a minute across all replicas and set Retry-After", async () => {
    const { uid, secret } = await hosts.open();
    await used(uid, 590);
    const second = await w.replica();
    const responses = await Promise.all(
      Array.from({ length: 30 }, (_, n) => hosts.github(uid, secret, { to: n % 2 ? w.url : second.url })),
    );
    expect(responses.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      ...Array(10).fill(202),
      ...Array(20).fill(429),
    ]);
    w.clock.advance(1_500);
    expect((await hosts.github(uid, secret)).headers.get("retry-after")).toBe("59");
    w.clock.advance(58_500);
    expect((await hosts.github(uid, secret)).status).toBe(202);
  });
  test("refuse an address after ten failures, but not a right secret from another address", async () => {
    const { uid, secret } = await hosts.open();
    const from = (address: string) => ({ headers: { "x-forwarded-for": address } });
    for (let n = 0; n < 10; n++) expect((await hosts.github(uid, "wrong", from("198.51.100.1"))).status).toBe(401);
    expect([
      (await hosts.github(uid, "wrong", from("198.51.100.1"))).status,
      (await hosts.github(uid, secret, from("198.51.100.1"))).status,
    ]).toEqual([429, 429]);
    expect((await hosts.github(uid, secret, from("198.51.100.2"))).status).toBe(202);
    w.clock.advance(60_000);
    expect((await hosts.github(uid, secret, from("198.51.100.1"))).status).toBe(202);
  });
  test("log at most sixty failures of a connection a minute", async () => {
    const { uid, secret } = await hosts.open("gitlab");
    const found: number[] = [];
    for (let n = 0; n < 62; n++)
      found.push((await hosts.gitlab(uid, "wrong", { headers: { "x-forwarded-for": `203.0.113.${n}` } })).status);
    expect(found).toEqual([...Array(60).fill(401), 429, 429]);
    expect((await hosts.gitlab(uid, secret)).status).toBe(202);
    expect(await hosts.outcomesOf(uid)).toEqual(["accepted", ...Array(60).fill("rejected_auth")]);
  });
});

describe("the log", () => {
  test("is paged, newest first, by cursors that are bound to the connection", async () => {
    const [{ uid, secret, ref }, other] = [await hosts.open(), await hosts.open()];
    for (let n = 0; n < 5; n++) await hosts.github(uid, secret, { id: `d${n}` });
    await hosts.github(other.uid, other.secret);
    const found: string[] = [];
    const cursors: string[] = [];
    let pageToken = "";
    do {
      const page = await hosts.client.listCodeHostDeliveries({ ...ref, pageSize: 2, pageToken }, call(OWNER));
      found.push(...page.deliveries.map(({ deliveryId }) => deliveryId));
      pageToken = page.nextPageToken;
      cursors.push(pageToken);
    } while (pageToken !== "");
    await expect(
      hosts.client.listCodeHostDeliveries({ ...other.ref, pageToken: cursors[0]! }, call(OWNER)),
    ).rejects.toEqual(refused("invalid_cursor"));
    expect(found.toSorted()).toEqual(["d0", "d1", "d2", "d3", "d4"]);
  });
  test("shows an entry only to its own connection, and any entry to consuming services", async () => {
    const [{ uid, secret, ref }, other] = [await hosts.open(), await hosts.open()];
    await hosts.github(uid, secret);
    const deliveryUid = (await hosts.logOf(uid))[0]!.uid;
    expect((await hosts.client.getCodeHostDelivery({ ...ref, deliveryUid }, call(OWNER))).delivery?.uid).toBe(
      deliveryUid,
    );
    for (const wrong of [
      { ...other.ref, deliveryUid },
      { ...ref, deliveryUid: newUid() },
      { ...ref, deliveryUid: "x" },
    ])
      await expect(hosts.client.getCodeHostDelivery(wrong, call(OWNER))).rejects.toEqual(refused("delivery_not_found"));
    await expect(hosts.client.getCodeHostDelivery({ deliveryUid: newUid() }, factories())).rejects.toEqual(
      refused("delivery_not_found"),
    );
  });
  test("returns accepted deliveries to the metrics service in one response, as long as their bodies fit", async () => {
    const metrics = () => call(serviceCaller("metrics", newUid()));
    const { uid, secret } = await hosts.open();
    for (const id of ["a", "b", "c"]) await hosts.github(uid, secret, { id });
    await hosts.github(uid, "wrong", { id: "d" });
    const log = await hosts.logOf(uid);
    const uidOf = (id: string) => log.find(({ deliveryId }) => deliveryId === id)!.uid;
    const refusedUid = log.find(({ outcome }) => outcome !== "accepted")!.uid;
    const deliveryUids = [uidOf("c"), newUid(), refusedUid, uidOf("a"), uidOf("b")];
    const all = await w.asMetrics.batchGetCodeHostDeliveries({ deliveryUids }, metrics());
    expect(all.deliveries.map(({ delivery }) => delivery?.deliveryId)).toEqual(["c", "a", "b"]);
    expect(all.deliveries[0]).toEqual(await w.asMetrics.getCodeHostDelivery({ deliveryUid: uidOf("c") }, metrics()));
    await w.rows("UPDATE code_host_deliveries SET body = $2 WHERE uid = ANY($1::uuid[])", [
      [uidOf("c"), uidOf("a")],
      Buffer.alloc(5 * 1024 * 1024),
    ]);
    const part = await w.asMetrics.batchGetCodeHostDeliveries({ deliveryUids }, metrics());
    expect(part.deliveries.map(({ delivery }) => delivery?.uid)).toEqual([uidOf("c")]);
    expect(part.omittedUids).toEqual([uidOf("a"), uidOf("b")]);
    const tooMany = Array.from({ length: 501 }, () => newUid());
    for (const wrong of [["x"], tooMany])
      await expect(w.asMetrics.batchGetCodeHostDeliveries({ deliveryUids: wrong }, metrics())).rejects.toEqual(
        refused("invalid_delivery_uids"),
      );
    await expect(hosts.client.batchGetCodeHostDeliveries({ deliveryUids }, call(OWNER))).rejects.toEqual(
      refused("service_caller_required"),
    );
  });
  test("is walked by the metrics service: every accepted delivery of all connections once, oldest first", async () => {
    const metrics = () => call(serviceCaller("metrics", newUid()));
    const walker = w.asMetrics;
    const [first, second] = [await hosts.open(), await hosts.open("gitlab")];
    await hosts.github(first.uid, first.secret, { id: "a", event: "push" });
    await hosts.github(first.uid, first.secret, { id: "a", event: "push" });
    await hosts.github(first.uid, "wrong", { id: "b" });
    await hosts.gitlab(second.uid, second.secret);
    await hosts.github(first.uid, first.secret, { id: "c", event: "issues", body: example("issues") });
    const found: { uid: string; codeHostUid: string; event: string }[] = [];
    let pageToken = "";
    do {
      const page = await walker.walkCodeHostDeliveries({ pageSize: 2, pageToken }, metrics());
      expect(page.deliveries.length).toBeLessThanOrEqual(2);
      found.push(...page.deliveries);
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    const accepted = await w.rows<{ uid: string }>(
      "SELECT uid FROM code_host_deliveries WHERE outcome = 'accepted' ORDER BY uid",
    );
    expect(found.map(({ uid }) => uid)).toEqual(accepted.map(({ uid }) => uid));
    expect(found.slice(-3).map(({ codeHostUid, event }) => [codeHostUid, event])).toEqual([
      [first.uid, "push"],
      [second.uid, "Push Hook"],
      [first.uid, "issues"],
    ]);
    await expect(walker.walkCodeHostDeliveries({ pageToken: "nonsense" }, metrics())).rejects.toEqual(
      refused("invalid_cursor"),
    );
  });
  test("is walked by no other service and by no person", async () => {
    await expect(hosts.client.walkCodeHostDeliveries({}, factories())).rejects.toEqual(refused("service_not_allowed"));
    await expect(hosts.client.walkCodeHostDeliveries({}, call(OWNER))).rejects.toEqual(
      refused("service_caller_required"),
    );
  });
  test("prunes entries older than a week except the newest fifty; of a closed address, all entries older than a week", async () => {
    const [{ uid }, closed] = [await hosts.open(), await hosts.open()];
    const days = (age: number) => new Date(NOW.getTime() - age * 24 * 3_600_000);
    const add = async (to: string, age: number) =>
      void (await w.rows(
        "INSERT INTO code_host_deliveries (uid, code_host_uid, team_uid, provider, outcome, dedupe_kind, dedupe_key, size_bytes, received_at, headers, body) VALUES (gen_random_uuid(), $1, $1, 'github', 'accepted', 'hash', $2, 1, $3, '{}', '1')",
        [to, `age ${age}`, days(age)],
      ));
    for (let n = 0; n < 49; n++) await add(uid, 8 + n / 100);
    for (const age of [6.9, 20, 21]) await add(uid, age);
    for (const age of [6.9, 7.1]) await add(closed.uid, age);
    await hosts.client.deleteCodeHostWebhook(closed.ref, call(OWNER));
    await w.service.prune();
    const retained = async (of: string) =>
      (
        await w.rows<{ dedupe_key: string }>(
          "SELECT dedupe_key FROM code_host_deliveries WHERE code_host_uid = $1 ORDER BY received_at DESC",
          [of],
        )
      ).map((row) => row.dedupe_key);
    const ids = await retained(uid);
    expect([ids.length, ids[0], ids.at(-1)]).toEqual([50, "age 6.9", "age 8.48"]);
    expect(await retained(closed.uid)).toEqual(["age 6.9"]);
  });
});

test("the listener gives every random code-host request the expected status, never a 5xx", async () => {
  const count = Number(process.env["MILLWRIGHT_LISTENER_FUZZ"] ?? 200);
  const open: Awaited<ReturnType<CodeHosts["open"]>>[] = [];
  for (let n = 0; n < Math.ceil(count / 100); n++) open.push(await hosts.open(n % 2 === 0 ? "github" : "gitlab"));
  const work = async (first: number) => {
    for (let n = first; n < count; n += 4) {
      const { uid, secret } = open[n % open.length]!;
      const isGithub = (n % open.length) % 2 === 0;
      const body =
        n % 3 === 0
          ? randomBytes(randomInt(300))
          : Buffer.from(JSON.stringify({ n, action: randomBytes(randomInt(200)).toString("base64") }));
      const isRight = n % 7 !== 0;
      const given = isRight ? secret : newUid();
      const junk = Object.fromEntries(
        ["x-github-event", "x-gitlab-event", "x-gitlab-event-uuid", "x-request-id", "content-type", "user-agent"].map(
          (name) => [
            name,
            randomBytes(randomInt(60))
              .toString("latin1")
              .replaceAll(/[^\x20-\x7e\x80-\xff]/g, "")
              .trim(),
          ],
        ),
      );
      const headers: Record<string, string> = {
        ...junk,
        "x-forwarded-for": `10.${n % 250}.${Math.floor(n / 250)}.1`,
        ...(isGithub
          ? { "x-hub-signature-256": hmac(given, body), "x-github-delivery": String(n) }
          : { "x-gitlab-token": given, "idempotency-key": String(n) }),
      };
      const { status } = await hosts.post(uid, headers, body);
      expect([n, status]).toEqual([n, !isRight ? 401 : isJsonText(body) ? 202 : 400]);
    }
  };
  await Promise.all([0, 1, 2, 3].map(work));
  expect(w.log.entries.filter(({ level }) => level === "error")).toEqual([]);
});

test("GitHub's library and the test's own signature agree", async () => {
  expect(await signForGitHub("s", "{}")).toBe(hmac("s", "{}"));
});
