import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import type { Deployment } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { RUN_TIMEOUT_MS, script } from "./support/runs.ts";
import { aFactory, applied, definitionFiles } from "./support/resources.ts";

let platform: Deployment;
let api: Client;
let factory: string;
let hook: any;

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 });
  api = await connect(platform);
  factory = await aFactory(api, definitionFiles(script("say: Done.")));
  hook = await api.post(`/factory/${factory}/webhooks`, { name: "hook" });
});
afterAll(() => platform?.remove());

const headers = { "content-type": "application/json" };
const automationWith = (payload: string): string =>
  `{"name":"n ${randomUUID()}","prompt":"p","triggers":[{"provider":"webhook","event":"received","filter":{"webhook_ids":["${hook.uid}"],"payload":${payload}}}]}`;
/** Returns the text of a response. Parsing it would change the numbers. */
const textOf = async (path: string): Promise<string> =>
  (await api.fetch(`${platform.url}/api/v1${path}`, { headers: { authorization: `Bearer ${api.key}` } })).text;

async function deliver(body: string): Promise<string> {
  const id = randomUUID();
  await api.fetch(hook.ingress_url, {
    method: "POST",
    headers: { authorization: `Bearer ${hook.secret}`, "x-service-delivery-id": id },
    body,
  });
  const { deliveries } = await api.get(`/factory/${factory}/webhooks/${hook.uid}/deliveries`);
  return deliveries.find((one: any) => one.delivery_id === id).uid;
}

/** Returns whether a delivery started the automation. */
const started = (automation: string, delivery: string): Promise<string> =>
  eventually(
    async (): Promise<any> => {
      const { body } = await api.call(
        "GET",
        `/factory/${factory}/automations/${automation}/decisions?event_uid=${delivery}`,
      );
      const outcome = body.decisions?.[0]?.outcome;
      return outcome !== undefined && outcome !== "pending" && String(outcome);
    },
    { timeoutMs: RUN_TIMEOUT_MS },
  );

/** Numbers that a double cannot represent, each with another one that has the same double value. */
const NUMBERS = [
  ["1e400", "1e401"],
  ["2.0000000000000001", "2"],
  ["9007199254740993", "9007199254740992"],
] as const;

describe.each(NUMBERS)("the number %s in a payload filter", (number, adjacent) => {
  test("is stored as written by the API, and compared exactly by deliveries and by the test filter", async () => {
    const rawBody = automationWith(`{"n":[${number}]}`);
    const { uid } = await api.post(`/factory/${factory}/automations`, undefined, { rawBody, headers });
    expect(await textOf(`/factory/${factory}/automations/${uid}`)).toContain(`"payload":{"n":[${number}]}`);
    expect(
      (
        await api.call("PUT", `/factory/${factory}/automations/${uid}`, {
          rawBody: rawBody.replace("{", '{"enabled":true,'),
          headers,
        })
      ).status,
    ).toBe(200);
    expect(await textOf(`/factory/${factory}/automations`)).toContain(`"payload":{"n":[${number}]}`);

    for (const [sent, outcome] of [
      [number, "fired"],
      [adjacent, "not_matched"],
    ] as const) {
      const delivery = await deliver(`{"n":${sent}}`);
      expect([sent, await started(uid, delivery)]).toEqual([sent, outcome]);
      for (const against of [`"delivery_uid":"${delivery}"`, `"payload":{"n":${sent}}`]) {
        const tested = await api.post(`/factory/${factory}/webhooks/test-filter`, undefined, {
          rawBody: `{"webhook_ids":["${hook.uid}"],"payload_filter":{"n":[${number}]},${against}}`,
          headers,
        });
        expect([sent, against, tested.would_trigger]).toEqual([sent, against, outcome === "fired"]);
      }
    }
    await api.delete(`/factory/${factory}/automations/${uid}`);
  });

  test("is the same in a definition file", async () => {
    const files = [
      ...definitionFiles(script("say: Done.")),
      {
        path: "automations/numbers/automation.md",
        content: `---\ntriggers:\n  - provider: webhook\n    event: received\n    filter:\n      webhook_ids: ["${hook.uid}"]\n      payload:\n        n: [${number}]\n---\n\nLook.\n`,
      },
    ];
    await api.put(`/factory/${factory}/source`, { files });
    expect((await applied(api, factory)).state).toBe("APPLIED");
    expect(await textOf(`/factory/${factory}/automations`)).toContain(`"payload":{"n":[${number}]}`);
    const { uid } = (await api.get(`/factory/${factory}/automations`)).automations.find(
      (one: any) => one.name === "numbers",
    );
    expect([
      await started(uid, await deliver(`{"n":${number}}`)),
      await started(uid, await deliver(`{"n":${adjacent}}`)),
    ]).toEqual(["fired", "not_matched"]);
  });
});

test("a filter by the field __proto__ is stored and compared like any other", async () => {
  const { uid } = await api.post(`/factory/${factory}/automations`, undefined, {
    rawBody: automationWith('{"__proto__":["x"]}'),
    headers,
  });
  expect(await textOf(`/factory/${factory}/automations/${uid}`)).toContain('"payload":{"__proto__":["x"]}');
  expect([
    await started(uid, await deliver('{"__proto__":"x"}')),
    await started(uid, await deliver('{"n":1}')),
  ]).toEqual(["fired", "not_matched"]);
});
