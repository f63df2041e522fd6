import { sign as signForGitHub } from "@octokit/webhooks-methods";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Stripe } from "stripe";
import { Webhook as SvixWebhook } from "svix";
import { call } from "@millwright/rpc";
import { NOW, OWNER, startWorld, type World } from "./setup.ts";

let w: World;
beforeAll(async () => void (w = await startWorld()));
afterAll(() => w?.stop());
beforeEach(() => w.clock.set(NOW));

const BODY = '{"type":"deploy.done","text":"caf\u00e9 \u{1f600}"}';
const at = (seconds: number) => new Date(NOW.getTime() + seconds * 1000);

type Sender = {
  scheme: string;
  secret: string;
  otherSecret: string;
  headers(secret: string, id: string, time: Date): Promise<Record<string, string>>;
  signsTime: boolean;
};

/** Each sender signs with a library of its provider or community. */
const SENDERS: readonly (readonly [string, Sender])[] = [
  [
    "standardwebhooks",
    {
      scheme: "standard_webhooks",
      secret: "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
      otherSecret: "whsec_BBBBsBQIhrscChlQIMV+b5sSYspob7oD",
      signsTime: true,
      headers: async (secret, id, time) => ({
        "webhook-id": id,
        "webhook-timestamp": String(time.getTime() / 1000),
        "webhook-signature": new StandardWebhook(secret).sign(id, time, BODY),
      }),
    },
  ],
  [
    "svix",
    {
      scheme: "standard_webhooks",
      secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
      otherSecret: "whsec_AAAQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
      signsTime: true,
      headers: async (secret, id, time) => ({
        "svix-id": id,
        "svix-timestamp": String(time.getTime() / 1000),
        "svix-signature": new SvixWebhook(secret).sign(id, time, BODY),
      }),
    },
  ],
  [
    "stripe",
    {
      scheme: "stripe",
      secret: "whsec_test_secret",
      otherSecret: "whsec_other_secret",
      signsTime: true,
      headers: async (secret, _id, time) => ({
        "stripe-signature": new Stripe("sk_test_none").webhooks.generateTestHeaderString({
          payload: BODY,
          secret,
          timestamp: time.getTime() / 1000,
        }),
      }),
    },
  ],
  [
    "@octokit/webhooks-methods",
    {
      scheme: "github",
      secret: "It's a Secret to Everybody",
      otherSecret: "another",
      signsTime: false,
      headers: async (secret, id) => ({
        "x-github-delivery": id,
        "x-github-event": "ping",
        "x-hub-signature-256": await signForGitHub(secret, BODY),
      }),
    },
  ],
];

describe.each(SENDERS)("a delivery signed by %s", (_library, sender) => {
  const hook = (secret = sender.secret) =>
    w.aWebhook({ authMode: "signature", signatureScheme: sender.scheme, secret });
  const send = async (
    uid: string,
    id: string,
    {
      secret = sender.secret,
      time = NOW,
      body = BODY,
      ...more
    }: { secret?: string; time?: Date; body?: string; token?: string } = {},
  ) => w.send(uid, { headers: await sender.headers(secret, id, time), body, ...more });

  test("is accepted and deduplicated by its provider's delivery id", async () => {
    const { uid } = await hook();
    const first = await send(uid, "id-1");
    expect(first.status).toBe(202);
    expect(first.body.delivery_id).toMatch(sender.scheme === "stripe" ? /^sha256:/ : /^id-1$/); // Stripe sends no delivery id in a header
    expect(await send(uid, "id-1")).toMatchObject({ status: 202, body: first.body });
    expect((await w.logOf(uid)).map(([outcome]) => outcome)).toEqual(["duplicate", "accepted"]);
  });
  test("is rejected with another secret, another or reformatted body, a token in its path, or no signature", async () => {
    const { uid } = await hook();
    const responses = [
      await send(uid, "id", { secret: sender.otherSecret }),
      await send(uid, "id", { body: `${BODY} ` }),
      await send(uid, "id", { body: JSON.stringify(JSON.parse(BODY), null, 1) }),
      await send(uid, "id", { token: sender.secret }),
      await w.send(uid, { body: BODY, headers: { authorization: `Bearer ${sender.secret}` } }),
    ];
    expect(responses.map(({ status }) => status)).toEqual([401, 401, 401, 401, 401]);
  });
  test("after a rotation is rejected with the old secret and accepted with the new one", async () => {
    const { uid } = await hook();
    expect((await send(uid, "a")).status).toBe(202);
    const { secret } = await w.client.rotateSecret({ webhookUid: uid, secret: sender.otherSecret }, call(OWNER));
    expect(secret).toBe("");
    expect((await send(uid, "b")).status).toBe(401);
    expect((await send(uid, "b", { secret: sender.otherSecret })).status).toBe(202);
  });
  test("is valid for five minutes in either direction, if its time is signed", async () => {
    const { uid } = await hook();
    const found: [number, number][] = [];
    for (const seconds of [-299, -301, 299, 301, -3_600])
      found.push([seconds, (await send(uid, `t${seconds}`, { time: at(seconds) })).status]);
    expect(found).toEqual([
      [-299, 202],
      [-301, sender.signsTime ? 401 : 202],
      [299, 202],
      [301, sender.signsTime ? 401 : 202],
      [-3_600, sender.signsTime ? 401 : 202],
    ]);
  });
});

test("a generated secret of Standard Webhooks works with their library", async () => {
  const { uid, secret } = await w.aWebhook({ authMode: "signature", signatureScheme: "standard_webhooks" });
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  const headers = {
    "webhook-id": "m",
    "webhook-timestamp": String(NOW.getTime() / 1000),
    "webhook-signature": new StandardWebhook(secret).sign("m", NOW, BODY),
  };
  expect(await w.send(uid, { headers, body: BODY })).toMatchObject({ status: 202, body: { delivery_id: "m" } });
});

test("with both Standard Webhooks and Svix headers, the signed id is the delivery's", async () => {
  const { uid, secret } = await w.aWebhook({ authMode: "signature", signatureScheme: "standard_webhooks" });
  const svix = {
    "svix-id": "signed",
    "svix-timestamp": String(NOW.getTime() / 1000),
    "svix-signature": new SvixWebhook(secret).sign("signed", NOW, BODY),
  };
  const others: Record<string, string>[] = [
    {},
    { "webhook-id": "unsigned" },
    { "webhook-id": "again", "webhook-timestamp": svix["svix-timestamp"] },
    { "webhook-signature": svix["svix-signature"], "webhook-id": "once more" },
  ];
  for (const beside of others)
    expect(await w.send(uid, { headers: { ...svix, ...beside }, body: BODY })).toMatchObject({
      status: 202,
      body: { delivery_id: "signed" },
    });
  expect((await w.logOf(uid)).map(([outcome]) => outcome)).toEqual(["duplicate", "duplicate", "duplicate", "accepted"]);
});
