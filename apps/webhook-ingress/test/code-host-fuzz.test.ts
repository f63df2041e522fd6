import { createHmac, randomBytes, randomInt } from "node:crypto";
import { expect, test } from "@jest/globals";
import { manualClock } from "@millwright/clock";
import { newUid } from "@millwright/ids";
import type { Provider } from "../src/domain/code-host-webhook.ts";
import type { CodeHostEntry, CodeHostReceiver } from "../src/store/code-host-delivery-store.ts";
import { receiveCodeHostDelivery, type InboundCodeHostDelivery } from "../src/usecases/receive-code-host-delivery.ts";
import { isJsonText } from "./fuzz.ts";
import { NOW } from "./setup.ts";

const pick = <T>(values: readonly T[]): T => values[randomInt(values.length)]!;
const oneIn = (n: number): boolean => randomInt(n) === 0;
const LIMIT = 25 * 1024 * 1024;

const aSecret = (provider: Provider): string =>
  provider === "gitlab" ? `whsec_${randomBytes(24).toString("base64")}` : randomBytes(12).toString("base64url");

/** How code hosts authenticate, implemented independently of the verifier. */
const PROOFS = {
  github: (secret: string, body: Buffer) => ({
    "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
  }),
  token: (secret: string) => ({ "x-gitlab-token": secret }),
  signature: (secret: string, body: Buffer, seconds: number) => {
    const key = Buffer.from(secret.slice("whsec_".length), "base64");
    return {
      "webhook-id": "m",
      "webhook-timestamp": String(seconds),
      "webhook-signature": `v1,${createHmac("sha256", key).update(`m.${seconds}.`).update(body).digest("base64")}`,
    };
  },
} as const;

function aBody(): Buffer {
  switch (randomInt(6)) {
    case 0:
      return randomBytes(randomInt(60));
    case 1:
      return Buffer.from(pick(["", "[1,]", "{}{}", "\ufeff{}", "nul", "'x'", "01"]));
    default:
      return Buffer.from(
        JSON.stringify({
          action: pick(["opened", "", 7, null]),
          object_attributes: pick([{ action: "open" }, null, []]),
          list: Array.from({ length: randomInt(5) }, () => randomInt(9)),
        }),
      );
  }
}

/** Returns a connection, a request to it at a time, and the expected outcome. */
function aRequest() {
  const provider = pick(["github", "gitlab"] as const);
  const proof = provider === "github" ? "github" : pick(["token", "signature"] as const);
  const secret = aSecret(provider);
  const seconds = Math.floor(NOW.getTime() / 1000);
  const skew = pick([0, 0, 0, 299, -299, 300, 301, -301, 5_000]);
  const fault = oneIn(3) ? pick(["secret", "absent", "garbled", "body"] as const) : undefined;
  const json = aBody();
  const isForm = oneIn(5);
  const body = isForm ? Buffer.from(new URLSearchParams({ payload: json.toString("latin1") }).toString()) : json;
  const claimed = oneIn(40) ? LIMIT + 1 : body.length;
  const shown = PROOFS[proof](
    fault === "secret" ? aSecret(provider) : secret,
    fault === "body" ? Buffer.concat([body, Buffer.from([0])]) : body,
    seconds,
  ) as Record<string, string>;
  const names = Object.keys(shown);
  const garbled = fault === "garbled" ? pick(names) : "";
  const headers: Record<string, string> = {
    ...(fault === "absent" ? {} : shown),
    ...(garbled && { [garbled]: randomBytes(randomInt(40)).toString("latin1") }),
    ...(isForm && { "content-type": "application/x-www-form-urlencoded; charset=utf-8" }),
    ...(oneIn(3) && {
      [provider === "github" ? "x-github-event" : "x-gitlab-event"]: pick([
        "push",
        "Push Hook",
        "caf\u00e9",
        "x".repeat(200),
      ]),
    }),
    ...(oneIn(4) && { "idempotency-key": randomBytes(4).toString("hex") }),
    ...(oneIn(4) && { "x-github-delivery": randomBytes(randomInt(9)).toString("latin1") }),
    ...(oneIn(30) && { "content-encoding": "gzip" }),
  };
  const isRight =
    (fault === undefined || (fault === "body" && proof === "token")) &&
    (proof !== "signature" || Math.abs(skew) <= 300);
  const isRead = proof !== "token" || isRight || fault === "body"; // a wrong token is rejected before the body is read
  const inbound: InboundCodeHostDelivery = {
    codeHostUid: newUid(),
    address: "192.0.2.1",
    requestId: "r",
    header: (name) => headers[name],
    body: async (most) => (claimed > most ? { tooLargeBytes: claimed } : { bytes: body }),
  };
  const to: CodeHostReceiver = {
    codeHostUid: inbound.codeHostUid as never,
    teamUid: newUid(),
    provider,
    secret,
    refusedForSeconds: undefined,
  };
  const isJson = isForm
    ? isJsonText(Buffer.from(new URLSearchParams(body.toString()).get("payload") ?? ""))
    : isJsonText(body);
  const noToken = proof === "signature" && fault === "absent"; // neither a signature nor a token
  const expected =
    noToken || !isRead
      ? "rejected_auth"
      : claimed > LIMIT
        ? "rejected_too_large"
        : !isRight
          ? "rejected_auth"
          : isJson && !("content-encoding" in headers)
            ? "accepted"
            : "rejected_invalid_json";
  return { to, inbound, body, expected, at: new Date((seconds + skew) * 1000) };
}

test("the use case gives every random code-host request the expected outcome", async () => {
  const clock = manualClock(NOW);
  const runs = Number(process.env["MILLWRIGHT_FUZZ"] ?? 5_000);
  for (let n = 0; n < runs; n++) {
    const { to, inbound, body, expected, at } = aRequest();
    clock.set(at);
    const entries: CodeHostEntry[] = [];
    const codeHostDeliveries = {
      findReceiver: async () => to,
      record: async (_to: CodeHostReceiver, entry: CodeHostEntry) => (entries.push(entry), { outcome: entry.outcome }),
      recordFailure: async (_to: CodeHostReceiver, _address: string, entry: Pick<CodeHostEntry, "outcome">) => ({
        outcome: entry.outcome,
      }),
    };
    const reception = await receiveCodeHostDelivery({ codeHostDeliveries, clock }, inbound);
    const stored = entries.flatMap((entry) => (entry.body ? [Buffer.from(entry.body).toString("latin1")] : []));
    expect([n, reception.outcome, stored]).toEqual([
      n,
      expected,
      expected === "accepted" ? [body.toString("latin1")] : [],
    ]);
    expect(JSON.stringify(entries)).not.toContain(to.secret);
  }
});
