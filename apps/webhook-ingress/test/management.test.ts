import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { call } from "@millwright/rpc";
import { serviceCaller } from "@millwright/caller";
import { newUid } from "@millwright/ids";
import { domainError } from "@millwright/testing";
import { Vault } from "@millwright/vault";
import { teamSecretStore } from "../src/store/team-secret-store.ts";
import { TeamSecrets } from "../src/usecases/team-secrets.ts";
import { bearer, MEMBER, NOW, OWNER, startWorld, OTHER_TEAM_OWNER, TEAM, type World } from "./setup.ts";

let w: World;
beforeAll(async () => void (w = await startWorld()));
afterAll(() => w?.stop());

const as = call(OWNER);
const create = (webhook: object, secret = "", idempotencyKey = "") =>
  w.client.createWebhook(
    { webhook: { factoryUid: w.aFactory(), name: "hook", enabled: true, ...webhook }, secret, idempotencyKey },
    as,
  );
const events = async (uid: string) =>
  (
    await w.rows<{ type: string; payload: any }>(
      "SELECT type, payload FROM stream.event_pending WHERE entity_uid = $1 ORDER BY seq",
      [uid],
    )
  ).map(({ type, payload }) => [type.split(".")[2], payload]);

describe("creating", () => {
  test.each([
    ["token", { authMode: "" }, /^[\w-]{43}$/],
    ["url_token", { authMode: "url_token" }, /^[\w-]{43}$/],
    ["signature", { authMode: "signature", signatureScheme: "standard_webhooks" }, /^whsec_[A-Za-z0-9+/]{43}=$/],
  ])("%s: its secret is generated and returned once", async (authMode, input, form) => {
    const { webhook, secret } = await create(input);
    expect(secret).toMatch(form);
    expect(webhook).toMatchObject({
      authMode,
      enabled: true,
      secretSet: true,
      secretName: "",
      management: "live",
      teamUid: TEAM,
      name: "hook",
      createdAt: { seconds: BigInt(NOW.getTime() / 1000) },
    });
    const read = (await w.client.getWebhook({ webhookUid: webhook!.uid }, as)).webhook!;
    expect(JSON.stringify({ ...read, createdAt: 0, updatedAt: 0 })).not.toContain(secret);
    expect(
      await w.rows("SELECT * FROM webhooks w WHERE uid = $1 AND w::text LIKE $2", [webhook!.uid, `%${secret}%`]),
    ).toEqual([]);
    expect(await events(webhook!.uid)).toEqual([
      ["created", { factory_uid: webhook!.factoryUid, name: "hook", auth_mode: authMode, enabled: true }],
    ]);
  });
  test.each(["github", "stripe", "pagerduty", "vercel", "sentry", "slack"])(
    "%s without its provider's secret: disabled until rotate sets the secret",
    async (signatureScheme) => {
      const { webhook, secret } = await create({ authMode: "signature", signatureScheme });
      expect([secret, webhook]).toMatchObject(["", { enabled: false, secretSet: false }]);
      const { uid } = webhook!;
      expect((await w.send(uid)).status).toBe(404);
      await expect(w.client.replaceWebhook({ webhookUid: uid, name: "hook", enabled: true }, as)).rejects.toEqual(
        domainError({ kind: "conflict", reason: "secret_missing" }),
      );
      await expect(w.client.rotateSecret({ webhookUid: uid }, as)).rejects.toEqual(
        domainError({ reason: "invalid_secret" }),
      );
      expect((await w.client.rotateSecret({ webhookUid: uid, secret: "theirs" }, as)).webhook).toMatchObject({
        enabled: true,
        secretSet: true,
      });
      expect((await w.send(uid)).status).toBe(401);
    },
  );
  test("disabled on request: rotation does not enable it", async () => {
    const { webhook } = await create({ enabled: false });
    expect(webhook).toMatchObject({ enabled: false, secretSet: true });
    expect((await w.client.rotateSecret({ webhookUid: webhook!.uid }, as)).webhook).toMatchObject({ enabled: false });
  });
  test.each<[string, object, string?]>([
    ["no name", { name: " " }],
    ["a long name", { name: "x".repeat(101) }],
    ["an unknown mode", { authMode: "basic" }],
    ["an unknown scheme", { authMode: "signature", signatureScheme: "md5" }],
    ["a signature without scheme", { authMode: "signature" }],
    ["a scheme without signature", { signatureScheme: "github" }],
    [
      "a signature header without generic_hmac_sha256",
      { authMode: "signature", signatureScheme: "github", signatureHeader: "X-S" },
    ],
    ["generic_hmac_sha256 without its header", { authMode: "signature", signatureScheme: "generic_hmac_sha256" }],
    ["an invalid header name", { deliveryIdHeader: "a b" }],
    ["the header of a bearer token", { deliveryIdHeader: "Authorization" }],
    ["the cookie header", { deliveryIdHeader: "cookie" }],
    [
      "a signature as identity",
      { authMode: "signature", signatureScheme: "github", deliveryIdHeader: "Stripe-Signature" },
    ],
    [
      "its own signature as identity",
      {
        authMode: "signature",
        signatureScheme: "generic_hmac_sha256",
        signatureHeader: "X-S",
        deliveryIdHeader: "x-s",
      },
    ],
  ])("is rejected for %s", async (_what, input) => {
    const factoryUid = w.aFactory();
    await expect(create({ factoryUid, ...input })).rejects.toEqual(
      domainError({ kind: "invalid_argument", reason: "invalid_webhook" }),
    );
    expect((await w.client.listWebhooks({ factoryUid }, as)).webhooks).toEqual([]);
  });
  test.each<[string, object, string]>([
    ["for a mode whose secret is generated", {}, "mine"],
    [
      "not base64 for Standard Webhooks",
      { authMode: "signature", signatureScheme: "standard_webhooks" },
      "whsec_no base64",
    ],
    ["too long", { authMode: "signature", signatureScheme: "github" }, "x".repeat(4_097)],
    ["in addition to a managed secret", { authMode: "signature", signatureScheme: "github", secretName: "S" }, "x"],
  ])("is rejected with an invalid secret: %s", async (_what, input, secret) =>
    expect(create(input, secret)).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "invalid_secret" })),
  );
  test("the 21st of a factory is a conflict, including disabled ones and concurrent requests; a deleted one does not count", async () => {
    const factoryUid = w.aFactory();
    const settled = await Promise.allSettled(
      Array.from({ length: 25 }, (_, n) => create({ factoryUid, name: `h${n}`, enabled: n % 2 === 0 })),
    );
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(20);
    await expect(create({ factoryUid })).rejects.toEqual(
      domainError({ kind: "conflict", reason: "too_many_webhooks" }),
    );
    const { webhooks } = await w.client.listWebhooks({ factoryUid }, as);
    expect(webhooks).toHaveLength(20);
    await w.client.deleteWebhook({ webhookUid: webhooks[0]!.uid }, as);
    await create({ factoryUid });
  });
  test("repeated under one key returns the first response with its secret; another body is a conflict; the secret is stored sealed", async () => {
    const factoryUid = w.aFactory();
    const first = await create({ factoryUid }, "", "key");
    await w.client.replaceWebhook({ webhookUid: first.webhook!.uid, name: "renamed", enabled: false }, as);
    w.setManagement(factoryUid, "external_files");
    expect(await create({ factoryUid }, "", "key")).toEqual(first);
    await expect(create({ factoryUid, name: "other" }, "", "key")).rejects.toEqual(
      domainError({ kind: "conflict", reason: "idempotency_mismatch" }),
    );
    expect((await w.client.listWebhooks({ factoryUid }, as)).webhooks).toHaveLength(1);
    expect(await w.rows("SELECT 1 FROM idempotency_keys WHERE response LIKE $1", [`%${first.secret}%`])).toEqual([]);
  });
  test("with one key in two factories creates two webhooks", async () => {
    const factories = [w.aFactory(), w.aFactory()];
    const created = [];
    for (const factoryUid of factories) created.push((await create({ factoryUid }, "", "one key")).webhook!.factoryUid);
    expect(created).toEqual(factories);
  });
  test("is refused if external files define the factory", async () => {
    await expect(create({ factoryUid: w.aFactory("external_files") })).rejects.toEqual(
      domainError({ kind: "conflict", reason: "managed_by_files" }),
    );
    await create({ factoryUid: w.aFactory("service_files") });
  });
});

describe("changing", () => {
  test("replaces name, header and enabled, publishes the new state, and changes nothing else", async () => {
    const { uid, webhook } = await w.aWebhook({ deliveryIdHeader: "X-Id" });
    const changed = (await w.client.replaceWebhook({ webhookUid: uid, name: " new ", enabled: false }, as)).webhook!;
    expect(changed).toEqual({
      ...webhook,
      name: "new",
      deliveryIdHeader: "",
      enabled: false,
      updatedAt: changed.updatedAt,
    });
    expect((await events(uid)).at(-1)).toMatchObject(["updated", { name: "new", enabled: false }]);
    await expect(w.client.replaceWebhook({ webhookUid: uid, name: "", enabled: true }, as)).rejects.toEqual(
      domainError({ reason: "invalid_webhook" }),
    );
  });
  test("rotation applies the new secret and rejects the old one at once, at every replica", async () => {
    const { uid, secret } = await w.aWebhook();
    const second = await w.replica();
    expect((await w.send(uid, { headers: bearer(secret) }, second.url)).status).toBe(202);
    const rotated = await w.client.rotateSecret({ webhookUid: uid }, as);
    expect(rotated.secret).not.toBe(secret);
    for (const url of [w.url, second.url]) {
      expect((await w.send(uid, { headers: bearer(secret) }, url)).status).toBe(401);
      expect((await w.send(uid, { headers: bearer(rotated.secret), body: JSON.stringify(url) }, url)).status).toBe(202);
    }
    expect((await events(uid)).at(-1)).toMatchObject(["updated", { secret_changed: true }]);
    expect(JSON.stringify(await events(uid))).not.toContain(rotated.secret);
    await expect(w.client.rotateSecret({ webhookUid: uid, secret: "mine" }, as)).rejects.toEqual(
      domainError({ reason: "invalid_secret" }),
    );
  });
  test("rotation of a url_token returns the complete new address", async () => {
    const { uid } = await w.aWebhook({ authMode: "url_token" });
    const { webhook, secret } = await w.client.rotateSecret({ webhookUid: uid }, as);
    expect(webhook!.ingressUrl).toBe(`https://hooks.test/webhooks/w/${uid}/${secret}`);
    expect((await w.send(uid, { token: secret })).status).toBe(202);
  });
  test("a deleted factory's webhooks are deleted: senders get 404, and events are published", async () => {
    const { uid, factoryUid, secret } = await w.aWebhook();
    w.factoryEvents.push({ type: "millwright.factory.deleted.v1", entityUid: factoryUid });
    await w.service.factoryEvents.drain();
    expect((await w.send(uid, { headers: bearer(secret) })).status).toBe(404);
    expect((await events(uid)).map(([type]) => type)).toEqual(["created", "deleted"]);
  });
});

describe("access", () => {
  test("requires membership of the team and webhook.manage; for everyone else it is not found", async () => {
    const { uid, factoryUid, secret } = await w.aWebhook();
    await w.send(uid, { headers: bearer(secret) });
    const { deliveries } = await w.client.listDeliveries({ webhookUid: uid }, as);
    const deliveryUid = deliveries[0]!.uid;
    const asks = (
      ids: { webhookUid: string; deliveryUid: string; factoryUid: string },
      who: Parameters<typeof call>[0],
    ): [string, Promise<unknown>][] => [
      ["webhook", w.client.getWebhook({ webhookUid: ids.webhookUid }, call(who))],
      ["webhook", w.client.replaceWebhook({ webhookUid: ids.webhookUid, name: "x" }, call(who))],
      ["webhook", w.client.rotateSecret({ webhookUid: ids.webhookUid }, call(who))],
      ["webhook", w.client.deleteWebhook({ webhookUid: ids.webhookUid }, call(who))],
      ["webhook", w.client.listDeliveries({ webhookUid: ids.webhookUid }, call(who))],
      ["delivery", w.client.getDelivery({ deliveryUid: ids.deliveryUid }, call(who))],
      ["factory", w.client.listWebhooks({ factoryUid: ids.factoryUid }, call(who))],
      ["factory", w.client.createWebhook({ webhook: { factoryUid: ids.factoryUid, name: "x" } }, call(who))],
      [
        "factory",
        w.client.testFilter(
          { factoryUid: ids.factoryUid, webhookUids: [ids.webhookUid], deliveryUid: ids.deliveryUid },
          call(who),
        ),
      ],
    ];
    for (const [, input] of asks({ webhookUid: uid, deliveryUid, factoryUid }, MEMBER))
      await expect(input).rejects.toEqual(domainError({ kind: "permission_denied", reason: "not_authorized" }));
    for (const ids of [
      { webhookUid: uid, deliveryUid, factoryUid },
      { webhookUid: newUid(), deliveryUid: newUid(), factoryUid: newUid() },
      { webhookUid: "x", deliveryUid: "x", factoryUid: "x" },
    ]) {
      for (const [entity, input] of asks(ids, OTHER_TEAM_OWNER))
        await expect(input).rejects.toEqual(domainError({ kind: "not_found", reason: `${entity}_not_found` }));
    }
    expect((await w.client.getWebhook({ webhookUid: uid }, as)).webhook).toMatchObject({ name: "hook" });
  });
  test("a webhook or delivery of another factory than the given one is not found", async () => {
    const [own, other] = [await w.aWebhook(), await w.aWebhook()];
    await w.send(own.uid, { headers: bearer(own.secret) });
    const {
      deliveries: [delivery],
    } = await w.client.listDeliveries({ webhookUid: own.uid, factoryUid: own.factoryUid }, as);
    await expect(w.client.getWebhook({ webhookUid: own.uid, factoryUid: other.factoryUid }, as)).rejects.toEqual(
      domainError({ reason: "webhook_not_found" }),
    );
    for (const ref of [{ factoryUid: other.factoryUid }, { webhookUid: other.uid }])
      await expect(w.client.getDelivery({ deliveryUid: delivery!.uid, ...ref }, as)).rejects.toEqual(
        domainError({ reason: "delivery_not_found" }),
      );
    await w.client.deleteWebhook({ webhookUid: own.uid }, as);
    await expect(w.client.getDelivery({ deliveryUid: delivery!.uid }, as)).rejects.toEqual(
      domainError({ reason: "delivery_not_found" }),
    );
    const forFactories = await w.asFactories.getDelivery(
      { deliveryUid: delivery!.uid },
      call(serviceCaller("factories", "r")),
    );
    expect(Buffer.from(forFactories.payload!).toString()).toBe("{}");
  });
});

test("the log is paged newest first, also over entries of the same time", async () => {
  const { uid, secret } = await w.aWebhook();
  for (let n = 0; n < 5; n++) await w.send(uid, { headers: bearer(secret), body: String(n) });
  const uids = (await w.client.listDeliveries({ webhookUid: uid, pageSize: 100 }, as)).deliveries.map(
    (delivery) => delivery.uid,
  );
  const paged: string[] = [];
  for (let token = ""; ;) {
    const page = await w.client.listDeliveries({ webhookUid: uid, pageSize: 2, pageToken: token }, as);
    paged.push(...page.deliveries.map((delivery) => delivery.uid));
    if (page.nextPageToken === "") break;
    token = page.nextPageToken;
  }
  expect(paged).toEqual(uids);
  expect(uids).toHaveLength(5);
  await expect(w.client.listDeliveries({ webhookUid: uid, pageToken: "AAAA" }, as)).rejects.toEqual(
    domainError({ reason: "invalid_cursor" }),
  );
});

describe("managed secrets", () => {
  const secretAt = (name: string) => `${TEAM} ${name}`;
  const asGateway = call(serviceCaller("gateway", "r"));

  test("are used by name, and a push or deletion applies at once", async () => {
    w.secrets.set(secretAt("K"), { value: "first", revision: "a/1" });
    const { uid, secret, webhook } = await w.aWebhook({ secretName: "K" });
    expect([secret, webhook.secretName, webhook.secretSet]).toEqual(["", "K", true]);
    const status = async (token: string) =>
      (await w.send(uid, { headers: bearer(token), body: JSON.stringify(token) })).status;
    expect([await status("first"), await status("second")]).toEqual([202, 401]);
    await w.client.updateManagedSecret({ teamUid: TEAM, name: "K", revision: "a/2", value: "second" }, asGateway);
    expect([await status("first"), await status("second")]).toEqual([401, 202]);
    await w.client.updateManagedSecret({ teamUid: TEAM, name: "K", revision: "a/1", value: "late" }, asGateway);
    expect([await status("late"), await status("second")]).toEqual([401, 202]);
    await w.client.updateManagedSecret({ teamUid: TEAM, name: "K", revision: "a/3" }, asGateway);
    expect(await status("second")).toBe(401);
    expect((await w.client.getWebhook({ webhookUid: uid }, as)).webhook!.secretSet).toBe(false);
    await w.client.updateManagedSecret({ teamUid: TEAM, name: "K", revision: "b/1", value: "again" }, asGateway);
    expect(await status("again")).toBe(202);
    await expect(w.client.rotateSecret({ webhookUid: uid }, as)).rejects.toEqual(
      domainError({ kind: "conflict", reason: "secret_managed" }),
    );
    expect(await w.rows("SELECT 1 FROM team_secrets s WHERE s::text ~ 'first|second|again'")).toEqual([]);
  });
  test("that no webhook names are not stored; absent or unusable ones are rejected", async () => {
    await w.client.updateManagedSecret({ teamUid: TEAM, name: "UNUSED", revision: "a/1", value: "x" }, asGateway);
    expect(await w.rows("SELECT 1 FROM team_secrets WHERE name = 'UNUSED'")).toEqual([]);
    await expect(create({ secretName: "ABSENT" })).rejects.toEqual(
      domainError({ kind: "invalid_argument", reason: "secret_not_found" }),
    );
    w.secrets.set(secretAt("SPACED"), { value: "not url safe", revision: "a/1" });
    await expect(create({ secretName: "SPACED", authMode: "url_token" })).rejects.toEqual(
      domainError({ reason: "invalid_secret" }),
    );
  });
  test.each([
    ["url_token", "", "not/url safe", "url-safe"],
    ["token", "", "two words", "one-word"],
    ["signature", "standard_webhooks", "no prefix", "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA="],
  ])(
    "that a %s webhook %s uses reject unusable values and stay unchanged",
    async (authMode, signatureScheme, unusable, usable) => {
      const name = `PUSHED_${authMode}`;
      w.secrets.set(secretAt(name), { value: usable, revision: "a/1" });
      const { uid, webhook } = await w.aWebhook({ secretName: name, authMode, signatureScheme });
      const push = (revision: string, value: string) =>
        w.client.updateManagedSecret({ teamUid: TEAM, name, revision, value }, asGateway);
      await expect(push("a/2", unusable)).rejects.toEqual(
        domainError({ kind: "invalid_argument", reason: "invalid_secret" }),
      );
      expect(await w.rows("SELECT revision FROM team_secrets WHERE name = $1", [name])).toEqual([{ revision: "a/1" }]);
      await push("a/2", usable);
      await w.client.deleteWebhook({ webhookUid: uid, factoryUid: webhook.factoryUid }, as);
      await push("a/3", unusable);
    },
  );
  test("that the gateway pushed and then failed to store are corrected", async () => {
    w.secrets.set(secretAt("HEALED"), { value: "stored", revision: "a/1" });
    const { uid } = await w.aWebhook({ secretName: "HEALED" });
    await w.client.updateManagedSecret({ teamUid: TEAM, name: "HEALED", revision: "a/2", value: "lost" }, asGateway);
    await w.service.confirmSecrets();
    expect((await w.send(uid, { headers: bearer("lost") })).status).toBe(202);
    w.clock.advance(15_001);
    await w.service.confirmSecrets();
    expect((await w.send(uid, { headers: bearer("lost") })).status).toBe(401);
    expect((await w.send(uid, { headers: bearer("stored"), body: "1" })).status).toBe(202);
    await w.client.updateManagedSecret(
      { teamUid: TEAM, name: "HEALED", revision: "a/2", value: "second-try" },
      asGateway,
    );
    expect((await w.send(uid, { headers: bearer("second-try"), body: "2" })).status).toBe(202);
  });
  test("that are deleted authenticate no sender, leave no copy, and do not return with a value fetched earlier", async () => {
    w.secrets.set(secretAt("GONE"), { value: "was", revision: "a/1" });
    const { uid } = await w.aWebhook({ secretName: "GONE" });
    const copy = () => w.rows("SELECT sealed IS NULL AS is_gone FROM team_secrets WHERE name = 'GONE'");
    expect([(await w.send(uid, { headers: bearer("was") })).status, await copy()]).toEqual([202, [{ is_gone: false }]]);
    let respond: (present: { value: string; revision: string }) => void = () => {};
    const identity = {
      secret: () => new Promise<{ value: string; revision: string }>((resolve) => (respond = resolve)),
    };
    const copies = teamSecretStore(w.t.database, Vault.fromMasterKey(new Uint8Array(32).fill(7)));
    const tracking = new TeamSecrets({
      copies: { ...copies, register: async () => {} },
      webhooks: { listNaming: async () => [] },
      identity,
      clock: w.clock,
    }).track({ teamUid: TEAM, name: "GONE" });
    w.secrets.delete(secretAt("GONE"));
    await w.client.updateManagedSecret({ teamUid: TEAM, name: "GONE", revision: "a/2" }, asGateway);
    w.clock.advance(15_001);
    await w.service.confirmSecrets();
    respond({ value: "was", revision: "a/1" });
    await tracking;
    expect([(await w.send(uid, { headers: bearer("was"), body: "1" })).status, await copy()]).toEqual([
      401,
      [{ is_gone: true }],
    ]);
    await w.client.updateManagedSecret({ teamUid: TEAM, name: "GONE", revision: "b/1", value: "back" }, asGateway);
    expect((await w.send(uid, { headers: bearer("back"), body: "2" })).status).toBe(202);
  });
  test("are pushed only by the gateway", async () => {
    await expect(
      w.client.updateManagedSecret({ teamUid: TEAM, name: "K", revision: "z", value: "x" }, as),
    ).rejects.toEqual(domainError({ kind: "permission_denied" }));
    await expect(
      w.asFactories.updateManagedSecret(
        { teamUid: TEAM, name: "K", revision: "z", value: "x" },
        call(serviceCaller("factories", "r")),
      ),
    ).rejects.toEqual(domainError({ kind: "permission_denied" }));
  });
});

describe("the test of a filter", () => {
  const ask = async (
    factoryUid: string,
    input: { webhookUids: string[]; filter?: unknown; deliveryUid?: string; payload?: string },
  ) =>
    w.client.testFilter(
      {
        factoryUid,
        webhookUids: input.webhookUids,
        payloadFilter: input.filter === undefined ? "" : JSON.stringify(input.filter),
        deliveryUid: input.deliveryUid ?? "",
        payload: input.payload === undefined ? undefined : Buffer.from(input.payload),
      },
      as,
    );

  test("evaluates a stored delivery by webhook and filter, ignores enabled, and writes nothing", async () => {
    const { uid, factoryUid, secret } = await w.aWebhook();
    const other = await w.aWebhook({ factoryUid });
    await w.send(uid, { headers: bearer(secret), body: '{"pull_request":{"draft":true},"n":1.0}' });
    await w.client.replaceWebhook({ webhookUid: uid, name: "hook", enabled: false }, as);
    const {
      deliveries: [delivery],
    } = await w.client.listDeliveries({ webhookUid: uid }, as);
    const deliveryUid = delivery!.uid;
    const before = await w.rows("SELECT count(*) FROM deliveries, stream.event_pending");
    expect(await ask(factoryUid, { webhookUids: [uid], deliveryUid })).toMatchObject({
      wouldTrigger: true,
      webhook: { passed: true },
      payload: { passed: true },
      failedPaths: [],
    });
    expect(await ask(factoryUid, { webhookUids: [uid], filter: { n: [1] }, deliveryUid })).toMatchObject({
      wouldTrigger: true,
    });
    expect(
      await ask(factoryUid, { webhookUids: [uid], filter: { pull_request: { draft: [false] } }, deliveryUid }),
    ).toMatchObject({
      wouldTrigger: false,
      webhook: { passed: true },
      payload: { passed: false },
      failedPaths: ["pull_request.draft"],
    });
    expect(await ask(factoryUid, { webhookUids: [other.uid], deliveryUid })).toMatchObject({
      wouldTrigger: false,
      webhook: { passed: false },
      payload: { passed: true },
    });
    expect(await ask(factoryUid, { webhookUids: [newUid()], deliveryUid })).toMatchObject({
      wouldTrigger: false,
      webhook: { passed: false },
    });
    expect(await w.rows("SELECT count(*) FROM deliveries, stream.event_pending")).toEqual(before);
  });
  test("accepts a payload instead of a delivery", async () => {
    const { uid, factoryUid } = await w.aWebhook();
    expect(await ask(factoryUid, { webhookUids: [uid], filter: { a: [1] }, payload: '[{"a":1}]' })).toMatchObject({
      wouldTrigger: true,
      webhook: { passed: true },
    });
    expect(await ask(factoryUid, { webhookUids: [uid], filter: { a: [1] }, payload: '"a"' })).toMatchObject({
      wouldTrigger: false,
      failedPaths: [""],
    });
  });
  test("evaluates a payload that is nested too deeply like an automation: it matches only without a filter", async () => {
    const { uid, factoryUid } = await w.aWebhook();
    const payload = `${"[".repeat(60_000)}1234567890123456.5${"]".repeat(60_000)}`;
    expect(await ask(factoryUid, { webhookUids: [uid], payload })).toMatchObject({ wouldTrigger: true });
    expect(await ask(factoryUid, { webhookUids: [uid], filter: {}, payload })).toMatchObject({ wouldTrigger: true });
    expect(await ask(factoryUid, { webhookUids: [uid], filter: { a: [1] }, payload })).toMatchObject({
      wouldTrigger: false,
      payload: { passed: false },
      failedPaths: [],
    });
  });
  test("rejects an invalid filter with every problem, an entry without payload, another factory's delivery, and neither or both inputs", async () => {
    const { uid, factoryUid, secret } = await w.aWebhook();
    await w.send(uid, { headers: bearer(secret), body: "x" });
    const {
      deliveries: [rejected],
    } = await w.client.listDeliveries({ webhookUid: uid }, as);
    const fault = await ask(factoryUid, { webhookUids: [uid], filter: { a: "x", b: { in: 1 } }, payload: "{}" }).catch(
      (error: unknown) => error,
    );
    expect(fault).toMatchObject({
      reason: "invalid_filter",
      kind: "invalid_argument",
      details: [{ path: "a" }, { path: "b.in" }],
    });
    await expect(
      ask(factoryUid, { webhookUids: [uid], filter: { a: [{ $decimal: "5" }] }, payload: '{"a":5}' }),
    ).rejects.toEqual(domainError({ kind: "invalid_argument", reason: "invalid_filter" }));
    await expect(ask(factoryUid, { webhookUids: [uid], deliveryUid: rejected!.uid })).rejects.toEqual(
      domainError({ reason: "payload_not_stored" }),
    );
    await expect(ask(w.aFactory(), { webhookUids: [uid], deliveryUid: rejected!.uid })).rejects.toEqual(
      domainError({ reason: "delivery_not_found" }),
    );
    for (const input of [{}, { deliveryUid: rejected!.uid, payload: "{}" }, { payload: "x" }])
      await expect(ask(factoryUid, { webhookUids: [uid], ...input })).rejects.toEqual(
        domainError({ reason: "invalid_payload" }),
      );
  });
});
