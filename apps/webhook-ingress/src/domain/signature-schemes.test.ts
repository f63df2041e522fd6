import { describe, expect, test } from "@jest/globals";
import { isCredentialHeader } from "@millwright/definition";
import { createHash, createHmac } from "node:crypto";
import { SCHEMES, ALL_SIGNATURE_SCHEMES, type SignatureScheme } from "./signature-schemes.ts";

const BODY = Buffer.from('{"id":"evt_1","type":"deploy.done","ok":true}');
const SECONDS = 1_700_000_000;
const NOW = new Date(SECONDS * 1000);
const STANDARD_SECRET = "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";
const hex = (key: string, body: Uint8Array | string, hash = "sha256") =>
  createHmac(hash, key).update(body).digest("hex");

type Case = {
  secret: string;
  headers: Record<string, string>;
  body?: Uint8Array;
  now?: Date;
  signatureHeader?: string;
  signaturePrefix?: string;
};
const verify = (
  scheme: SignatureScheme,
  { secret, headers, body = BODY, now = NOW, signatureHeader, signaturePrefix }: Case,
) =>
  SCHEMES[scheme].verify({ header: (name) => headers[name], body }, { secret, now, signatureHeader, signaturePrefix });

const LINEAR = Buffer.from(JSON.stringify({ webhookTimestamp: NOW.getTime() }));
/** The project's test vectors, where there are any. */
const GOOD: Readonly<Record<SignatureScheme, Case>> = {
  github: {
    secret: "topsecret",
    headers: { "x-hub-signature-256": "sha256=8af0e87b1f1ff69a2c7c1bcbe63ee200c0402d94b6bc1e40b445a4995335bcad" },
  },
  stripe: {
    secret: "whsec_abc123",
    headers: { "stripe-signature": "t=1700000000,v1=0b8ee6f96fb5a133301fb13b82040c8c1907dad94d5da062155b2f909ff6686a" },
  },
  standard_webhooks: {
    secret: STANDARD_SECRET,
    headers: {
      "webhook-id": "msg_1",
      "webhook-timestamp": "1700000000",
      "webhook-signature": "v1,Ub80Vtp5vlZSlzJ9cTHcof4pkIMtcWSgmdTPCc6VkkY=",
    },
  },
  pagerduty: {
    secret: "pdsecret",
    headers: { "x-pagerduty-signature": "v1=bc2d0783346f230a75598d3e5c8ae84318104d72f7072e8efb227b6f0295abc5" },
  },
  sentry: {
    secret: "sentrysecret",
    headers: { "sentry-hook-signature": "239ecf7b75591b04e3471e91036ff940eeb8393fc563d031952729eb354a7a2d" },
  },
  vercel: { secret: "vercelsecret", headers: { "x-vercel-signature": "2c46cad1c041b4dec8fcbb81f70635930beb8c46" } },
  slack: {
    secret: "slacksecret",
    headers: {
      "x-slack-signature": "v0=ed42720f2fe562bb43f6f6e5ea6396d7f77ee6542fd0f437d2ada5f17b2e20b0",
      "x-slack-request-timestamp": "1700000000",
    },
  },
  linear: { secret: "linearsecret", body: LINEAR, headers: { "linear-signature": hex("linearsecret", LINEAR) } },
  shopify: {
    secret: "shopsecret",
    headers: { "x-shopify-hmac-sha256": "X5XMIsH9vQzTkEYU5EX7+ZH3pi9USANXqJ+v5Oq/YWM=" },
  },
  gitlab: { secret: "gitlab token é", headers: { "x-gitlab-token": Buffer.from("gitlab token é").toString("latin1") } },
  generic_hmac_sha256: {
    secret: "g",
    signatureHeader: "X-My-Signature",
    signaturePrefix: "hmac ",
    headers: { "x-my-signature": `hmac ${hex("g", BODY)}` },
  },
};

test("linear's test vector, whose body has no time, has a valid signature but is rejected as too old", () => {
  expect(hex("linearsecret", BODY)).toBe("caaea4e1886218cdfd23a4ede3409b1728f610d05addae45a2ea151b1a0cb398");
  expect(verify("linear", { secret: "linearsecret", headers: { "linear-signature": hex("linearsecret", BODY) } })).toBe(
    false,
  );
});
test("the body's hash equals the test vector", () =>
  expect(createHash("sha256").update(BODY).digest("hex")).toBe(
    "82a25a48220a343e1b9dd004c83cb3a3b052620fecfbed87c95e4d3359e1366b",
  ));

describe.each(ALL_SIGNATURE_SCHEMES)("%s", (scheme) => {
  const good = GOOD[scheme];
  const names = Object.keys(good.headers);
  test("accepts what is signed with the secret", () => expect(verify(scheme, good)).toBe(true));
  test("rejects a changed body, secret or header, and absent headers", () => {
    const isSigned = scheme !== "gitlab"; // which sends a shared token only
    expect(verify(scheme, { ...good, body: Buffer.concat([good.body ?? BODY, Buffer.from(" ")]) })).toBe(!isSigned);
    expect(verify(scheme, { ...good, secret: scheme === "standard_webhooks" ? "whsec_AAAA" : `${good.secret}x` })).toBe(
      false,
    );
    for (const name of names) {
      const { [name]: value = "", ...others } = good.headers;
      const flipped =
        value.slice(0, -2) + (value.endsWith("0=") ? "1=" : value.at(-2) === "0" ? "1" : "0") + value.slice(-1);
      for (const headers of [
        others,
        { ...others, [name]: "" },
        { ...others, [name]: `${value}x` },
        { ...others, [name]: flipped },
      ])
        expect([name, headers[name], verify(scheme, { ...good, headers })]).toEqual([name, headers[name], false]);
    }
  });
  test("its signature header is known as a credential", () =>
    expect(names.some(isCredentialHeader)).toBe(scheme !== "generic_hmac_sha256"));
  test("never throws, whatever the headers contain", () => {
    for (const junk of [
      "",
      ",",
      "=",
      "v1=",
      "v1,",
      "t=,v1=",
      "t=1,t=2,v1=x",
      "sha256=",
      "v0=",
      "é\u00ff",
      " ",
      "v1,===",
      "t=1e3,v1=00",
      `t=${"9".repeat(400)}`,
    ])
      expect(verify(scheme, { ...good, headers: Object.fromEntries(names.map((name) => [name, junk])) })).toBe(false);
  });
});

test.each(["github", "pagerduty", "sentry", "vercel", "stripe", "slack"] as const)(
  "%s: hexadecimal may be upper case",
  (scheme) => {
    const [name, value] = Object.entries(GOOD[scheme].headers)[0]!;
    const at = value.search(/[0-9a-f]{40,}$/);
    expect(
      verify(scheme, {
        ...GOOD[scheme],
        headers: { ...GOOD[scheme].headers, [name]: value.slice(0, at) + value.slice(at).toUpperCase() },
      }),
    ).toBe(true);
  },
);

test.each([
  ["standard_webhooks", 300],
  ["stripe", 300],
  ["slack", 300],
  ["linear", 60],
] as const)("%s: accepts a time up to %i s away in either direction", (scheme, limit) => {
  for (const direction of [-1, 1]) {
    for (const [away, isGood] of [
      [limit - 1, true],
      [limit, true],
      [limit + 1, false],
      [86_400, false],
    ] as const) {
      expect([
        direction * away,
        verify(scheme, { ...GOOD[scheme], now: new Date(NOW.getTime() + direction * away * 1000) }),
      ]).toEqual([direction * away, isGood]);
    }
  }
});

test("accepts one right signature among several and ignores unknown versions", () => {
  const { headers: standard } = GOOD.standard_webhooks;
  const right = standard["webhook-signature"]!;
  for (const list of [`v1a,AAAA ${right}`, `v1,AAAA ${right}`, `${right} v1,AAAA`])
    expect(
      verify("standard_webhooks", { ...GOOD.standard_webhooks, headers: { ...standard, "webhook-signature": list } }),
    ).toBe(true);
  expect(
    verify("standard_webhooks", {
      ...GOOD.standard_webhooks,
      headers: { ...standard, "webhook-signature": right.replace("v1,", "v1a,") },
    }),
  ).toBe(false);
  const [time, stripe] = GOOD.stripe.headers["stripe-signature"]!.split(",");
  for (const list of [`${time},v1=00,${stripe}`, `${time}, ${stripe},v1=00`, `${stripe},v0=00,${time}`])
    expect(verify("stripe", { ...GOOD.stripe, headers: { "stripe-signature": list } })).toBe(true);
  expect(
    verify("stripe", { ...GOOD.stripe, headers: { "stripe-signature": `${time},${stripe!.replace("v1", "v0")}` } }),
  ).toBe(false);
  const pagerduty = GOOD.pagerduty.headers["x-pagerduty-signature"]!;
  expect(verify("pagerduty", { ...GOOD.pagerduty, headers: { "x-pagerduty-signature": `v1=00, ${pagerduty}` } })).toBe(
    true,
  );
});

test("Standard Webhooks: Svix's names are accepted; only the first complete set of headers counts", () => {
  const { headers, secret } = GOOD.standard_webhooks;
  const svix = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.replace("webhook", "svix"), value]),
  );
  const wrong = { ...headers, "webhook-signature": "v1,AAAA" };
  expect(verify("standard_webhooks", { secret, headers: svix })).toBe(true);
  expect(verify("standard_webhooks", { secret, headers: { ...svix, "webhook-id": "msg_1" } })).toBe(true);
  expect(verify("standard_webhooks", { secret, headers: { ...svix, ...wrong } })).toBe(false);
  expect(
    verify("standard_webhooks", {
      secret,
      headers: { ...headers, "svix-id": "x", "svix-timestamp": "1", "svix-signature": "v1,x" },
    }),
  ).toBe(true);
});

test("secrets with the prefix whsec_ are validated by the rule of their own scheme", () => {
  expect(SCHEMES.standard_webhooks.takesSecret("whsec_no base64")).toBe(false);
  expect(SCHEMES.standard_webhooks.takesSecret("whsec_")).toBe(false);
  expect(SCHEMES.standard_webhooks.takesSecret(STANDARD_SECRET)).toBe(true);
  expect(SCHEMES.standard_webhooks.takesSecret(STANDARD_SECRET.slice(6))).toBe(true);
  expect(SCHEMES.stripe.takesSecret("whsec_no base64")).toBe(true);
});

test("ignores GitHub's SHA-1 header and rejects a SHA-256 in Vercel's header", () => {
  expect(
    verify("github", { secret: "topsecret", headers: { "x-hub-signature": `sha1=${hex("topsecret", BODY, "sha1")}` } }),
  ).toBe(false);
  expect(
    verify("vercel", { secret: "vercelsecret", headers: { "x-vercel-signature": hex("vercelsecret", BODY) } }),
  ).toBe(false);
});
