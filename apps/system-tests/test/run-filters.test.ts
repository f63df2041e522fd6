import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Deployment } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { script } from "./support/runs.ts";
import { aFactory, definitionFiles } from "./support/resources.ts";

let platform: Deployment;
let api: Client;

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 });
  api = await connect(platform);
});
afterAll(() => platform?.remove());

const startRun = async (body: object): Promise<string> => (await api.post("/agent/runs", body)).run_id;
const listed = async (query: string): Promise<string[]> =>
  (await api.get(`/agent/runs?limit=500&${query}`)).runs.map((run: any) => run.run_id);

describe("metadata", () => {
  test("stores the key __proto__ and filters by it like by any other key", async () => {
    const value = randomUUID();
    const rawBody = `{"prompt": "p", "metadata": {"__proto__": "${value}", "constructor": "c"}}`;
    const { run_id: run } = await api.post("/agent/runs", undefined, {
      rawBody,
      headers: { "content-type": "application/json" },
    });
    await startRun({ prompt: "without metadata" });

    const { metadata } = await api.get(`/agent/runs/${run}`);
    expect(Object.entries(metadata)).toEqual(
      expect.arrayContaining([
        ["__proto__", value],
        ["constructor", "c"],
      ]),
    );
    expect(await listed(`metadata[__proto__]=${value}`)).toEqual([run]);
    expect(await listed(`metadata[__proto__]=${value}&metadata[constructor]=c`)).toEqual([run]);
    expect(await listed(`metadata[__proto__]=${randomUUID()}`)).toEqual([]);
  });

  test("applies its limits to the key __proto__ too", async () => {
    const rawBody = `{"prompt": "p", "metadata": {"__proto__": "${"x".repeat(257)}"}}`;
    expect(await api.call("POST", "/agent/runs", { rawBody })).toMatchObject({
      status: 400,
      body: { error_code: "invalid_request" },
    });
  });
});

describe("an empty value", () => {
  const FILTERS = [
    "ancestor_run_id",
    "environment_id",
    "creator",
    "executor",
    "name",
    "model_id",
    "skill",
    "skill_spec",
    "schedule_id",
    "factory_uid",
    "automation_id",
    "conversation_id",
  ];

  test.each(FILTERS)("of the filter %s is a 400", async (name) => {
    expect(await api.call("GET", `/agent/runs?${name}=`)).toMatchObject({
      status: 400,
      body: { reason: "invalid_parameter", detail: expect.stringContaining(name) },
    });
  });

  test.each(["parent_run_id", "conversation_id", "agent_identity_uid"])("of %s of a new run is a 400", async (name) => {
    expect(await api.call("POST", "/agent/runs", { body: { prompt: "p", [name]: "" } })).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining(name) },
    });
  });

  test("of a metadata filter asks for runs whose value is empty", async () => {
    const key = `k.${randomUUID()}`;
    const [empty, other] = [
      await startRun({ prompt: "p", metadata: { [key]: "" } }),
      await startRun({ prompt: "p", metadata: { [key]: "x" } }),
    ];
    expect([await listed(`metadata[${key}]=`), await listed(`metadata[${key}]=x`)]).toEqual([[empty], [other]]);
  });
});

describe("the published filters", () => {
  test("factory_only and automation_id list the runs of factories and of one automation", async () => {
    const factory = await aFactory(api, definitionFiles(script("say: Done.")));
    const webhook = await api.post(`/factory/${factory}/webhooks`, { name: "hook" });
    const triggers = [{ provider: "webhook", event: "received", filter: { webhook_ids: [webhook.uid] } }];
    const automation = await api.post(`/factory/${factory}/automations`, {
      name: "auto",
      prompt: script("say: Done."),
      triggers,
    });
    const standalone = await startRun({ prompt: "p" });
    const { run_id: dispatched } = await api.post(`/factory/${factory}/runs`, { prompt: "p" });
    const { run_id: automated } = await api.post(`/factory/${factory}/automations/${automation.uid}/run`);

    expect(new Set(await listed(`factory_only=true&factory_uid=${factory}`))).toEqual(new Set([dispatched, automated]));
    expect(await listed("factory_only=true")).not.toContain(standalone);
    expect(await listed("factory_only=false")).toEqual(expect.arrayContaining([standalone, dispatched, automated]));
    expect(await listed(`automation_id=${automation.uid}`)).toEqual([automated]);
    expect(await listed(`automation_id=${randomUUID()}`)).toEqual([]);
    const metadata = (uid: string) => `metadata[automation_uid]=${uid}&automation_id=${automation.uid}`;
    expect(await listed(metadata(automation.uid))).toEqual([automated]);
    expect(await listed(metadata(randomUUID()))).toEqual([]);
    expect((await api.call("GET", "/agent/runs?factory_only=1")).status).toBe(400);
  });

  test("ignore query parameters that no operation documents", async () => {
    const run = await startRun({ prompt: "p" });
    expect(await listed("no_such_filter=x&no_such_filter=")).toContain(run);
  });
});

describe("q", () => {
  test("finds words despite typos, and beginnings of words, when no run has the words themselves", async () => {
    const [name, other] = [`Quixotronic${randomUUID().slice(0, 8)}`, "Unrelated"];
    const run = await startRun({ title: "Repair", prompt: `Calibrate the ${name} regulator` });
    await startRun({ title: other, prompt: "Nothing of the kind" });
    const exact = name.toLowerCase();
    const swapped = `${exact.slice(0, 4)}${exact[5]}${exact[4]}${exact.slice(6)}`;
    for (const q of [
      exact,
      exact.slice(2, -2),
      swapped,
      `${exact.slice(0, 6)}${exact.slice(7)}`,
      `${exact.slice(0, 5)}x${exact.slice(6)}`,
      `calibrate ${swapped}`,
      "calibarte regulatr",
    ]) {
      expect([q, await listed(`q=${encodeURIComponent(q)}`)]).toEqual([q, [run]]);
    }
    expect(await listed(`q=${swapped}&state=SUCCEEDED`)).toEqual([]);
    expect(await listed(`q=staging ${swapped}`)).toEqual([]);
  });

  test("lists exact matches only if there are any, else similar ones in pages in the requested order", async () => {
    const word = `zephyr${Array.from(randomUUID().replaceAll(/[^a-f]/g, ""))
      .slice(0, 4)
      .join("")}lamp`;
    const typo = word.replace("zephyr", "zephry");
    const similar: string[] = [];
    for (let n = 0; n < 5; n += 1) similar.push(await startRun({ prompt: `${word} ${n}` }));
    const paged: string[] = [];
    for (let cursor = ""; ;) {
      const { runs, page_info: page } = await api.get(
        `/agent/runs?q=${typo}&sort_by=created_at&sort_order=asc&limit=2${cursor}`,
      );
      paged.push(...runs.map((run: any) => run.run_id));
      if (!page.has_next_page) break;
      cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`;
    }
    expect(paged).toEqual(similar);
    const exact = await startRun({ prompt: typo });
    expect(await listed(`q=${typo}`)).toEqual([exact]);
  });
});

describe("ticket_url", () => {
  test("of a dispatch has the length limit of a URL", async () => {
    const factory = await aFactory(api, definitionFiles(script("say: Done.")));
    const url = `https://tracker.example/${"t".repeat(2048 - 24)}`;
    const { run_id: run } = await api.post(`/factory/${factory}/runs`, { prompt: "p", ticket_url: url });
    expect((await api.get(`/agent/runs/${run}`)).metadata.ticket_url).toBe(url);
    expect(
      await api.call("POST", `/factory/${factory}/runs`, { body: { prompt: "p", ticket_url: `${url}t` } }),
    ).toMatchObject({ status: 400, body: { detail: expect.stringContaining("ticket_url") } });
  });
});
