import { describe, expect, test } from "@jest/globals";
import type { TriggerPart } from "@millwright/definition";
import { evaluateAutomation } from "./decision.ts";
import { bodyOf, checkDelivery } from "./webhook-trigger.ts";

const HOOK = "0198c2d0-0000-7000-8000-0000000000a1";
const OTHER = "0198c2d0-0000-7000-8000-0000000000a2";
const trigger = (payload?: object, uid = HOOK): TriggerPart => ({
  provider: "webhook",
  event: "received",
  filter: { webhook_ids: { in: [uid] } },
  ...(payload && { payload }),
});
const bytes = (value: unknown) => Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
const automation = (triggers: TriggerPart[], enabled = true) => ({
  enabled,
  creatorLostAccess: false,
  rules: { triggers, prompt: "Do." },
});
const verdict = (
  triggers: TriggerPart[],
  body: Parameters<typeof bodyOf>[0],
  more: { enabled?: boolean; veto?: string } = {},
) => evaluateAutomation(automation(triggers, more.enabled ?? true), checkDelivery(HOOK, bodyOf(body)), more.veto);

describe("a webhook trigger", () => {
  test.each([
    ["no filter", trigger(), {}, "pending"],
    ["an empty filter", trigger({}), 7, "pending"],
    ["a filter that matches", trigger({ kind: ["a"] }), { kind: "a" }, "pending"],
    ["a filter that does not", trigger({ kind: ["a"] }), { kind: "b" }, "not_matched"],
    ["a uid in capitals", trigger(undefined, HOOK.toUpperCase()), {}, "pending"],
    [
      "a payload too deep to be read",
      trigger({ kind: ["a"], n: [1.5] }),
      `${"[".repeat(60_000)}1234567890123456.5${"]".repeat(60_000)}`,
      "not_matched",
    ],
    [
      "a payload too deep to be read and no filter",
      trigger({}),
      `${"[".repeat(60_000)}1234567890123456.5${"]".repeat(60_000)}`,
      "pending",
    ],
    [
      "a stored number that a float would change",
      trigger({ n: [{ $decimal: "12345678901234567890" }] }),
      `{"n":12345678901234567890}`,
      "pending",
    ],
    ["a payload that was pruned", trigger(), undefined, "not_matched"],
  ])("with %s", (_case, triggerPart, body, outcome) =>
    expect(verdict([triggerPart], body === undefined ? undefined : bytes(body))).toMatchObject({ outcome }),
  );

  test("names the fields that do not match", () =>
    expect(verdict([trigger({ a: { b: [1] }, c: ["x"] })], bytes({ a: { b: 2 }, c: "x" }))).toEqual({
      outcome: "not_matched",
      explanation: "The payload does not match: a.b.",
      checks: [{ trigger: 0, passed: false, detail: "The payload does not match: a.b.", failed: ["a.b"] }],
    }));

  test("ignores other webhooks and other providers", () => {
    expect(verdict([trigger(undefined, OTHER)], bytes({}))).toBeUndefined();
    expect(
      verdict([{ provider: "schedule", event: "cron_fired", filter: {}, schedule: { cron: "@daily" } }], bytes({})),
    ).toBeUndefined();
  });
});

test("several matching triggers of one automation start one run", () =>
  expect(verdict([trigger({ kind: ["b"] }), trigger(), trigger({ kind: ["a"] })], bytes({ kind: "a" }))).toMatchObject({
    outcome: "pending",
    checks: [
      { trigger: 0, passed: false },
      { trigger: 1, passed: true },
      { trigger: 2, passed: true },
    ],
  }));

test("an automation that matches but is disabled, or would loop, starts nothing", () => {
  expect(verdict([trigger()], bytes({}), { enabled: false })).toMatchObject({ outcome: "disabled" });
  expect(verdict([trigger()], bytes({}), { veto: "A loop." })).toMatchObject({
    outcome: "suppressed",
    explanation: "A loop.",
  });
  expect(verdict([trigger({ kind: ["a"] })], bytes({}), { veto: "A loop." })).toMatchObject({ outcome: "not_matched" });
});
