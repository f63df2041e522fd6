import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Deployment } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { script } from "./support/runs.ts";
import { aFactory, definitionFiles } from "./support/resources.ts";

const LIMIT = 1_048_576;
const LARGEST = "é".repeat(LIMIT / 2);
const PREVIEW = 2_000;
const SCHEDULE = { name: "n", cron_schedule: "0 0 1 1 *", enabled: false };

let platform: Deployment;
let api: Client;
let factory: string;

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 });
  api = await connect(platform);
  factory = await aFactory(api, definitionFiles(script("say: Done.")));
});
afterAll(() => platform?.remove());

const startRun = async (prompt: string): Promise<string> => (await api.post("/agent/runs", { prompt })).run_id;
const tooLarge = (bytes: number) => ({
  status: 413,
  body: {
    error_code: "payload_too_large",
    reason: "text_too_large",
    retryable: false,
    detail: expect.stringMatching(new RegExp(`${bytes} bytes.*${LIMIT}.*attachment`)),
  },
});

describe("text over the limit", () => {
  type Send = (text: string) => Promise<{ readonly status: number }>;
  const WAYS: [what: string, send: Send][] = [
    ["a new run", async (prompt) => api.call("POST", "/agent/runs", { body: { prompt } })],
    ["a dispatch", async (prompt) => api.call("POST", `/factory/${factory}/runs`, { body: { prompt } })],
    ["a new schedule", async (prompt) => api.call("POST", "/agent/schedules", { body: { ...SCHEDULE, prompt } })],
    [
      "a replaced schedule",
      async (prompt) =>
        api.call("PUT", `/agent/schedules/${(await api.post("/agent/schedules", { ...SCHEDULE, prompt: "p" })).id}`, {
          body: { ...SCHEDULE, prompt },
        }),
    ],
  ];

  test.each<[string, Send]>(WAYS)(
    "of %s is a 413 with the size and the limit; text at the limit is accepted",
    async (_what, send) => {
      expect(await send(`${LARGEST}x`)).toMatchObject(tooLarge(LIMIT + 1));
      expect((await send(LARGEST)).status).toBeLessThan(300);
    },
  );

  test("of a follow-up is a 413 with the size and the limit; text at the limit is accepted", async () => {
    const followUp = async (message: string) =>
      api.call("POST", `/agent/runs/${await startRun("p")}/followups`, { body: { message } });
    expect(await followUp(`${LARGEST}x`)).toMatchObject(tooLarge(LIMIT + 1));
    expect((await followUp("m".repeat(LIMIT - 1))).status).toBe(200);
  });

  test("counts the prompt and every follow-up that the agent has not received", async () => {
    const run = await startRun("a".repeat(LIMIT / 2));
    const followUp = (bytes: number) =>
      api.call("POST", `/agent/runs/${run}/followups`, { body: { message: "b".repeat(bytes) } });
    expect((await followUp(LIMIT / 4)).status).toBe(200);
    expect(await followUp(LIMIT / 4 + 1)).toMatchObject(tooLarge(LIMIT + 1));
    expect((await followUp(LIMIT / 4)).status).toBe(200);
    expect(await followUp(1)).toMatchObject(tooLarge(LIMIT + 1));
    expect((await api.get(`/agent/runs/${run}`)).submitted_prompt).toHaveLength(LIMIT + 4);
  });

  test("of an automation is refused with the size and its own limit", async () => {
    const body = {
      name: "large",
      prompt: "p".repeat(262_145),
      triggers: [{ provider: "schedule", event: "cron_fired", schedule: { cron: "0 0 1 1 *" } }],
    };
    expect(await api.call("POST", `/factory/${factory}/automations`, { body })).toMatchObject({
      status: 400,
      body: { reason: "invalid_automation", detail: expect.stringMatching(/262144 bytes \(got 262145\)/) },
    });
  });

  test("of a configuration is a 413 with the size and its own limit", async () => {
    const body = { prompt: "p", config: { base_prompt: "b".repeat(131_072) } };
    expect(await api.call("POST", "/agent/runs", { body })).toMatchObject({
      status: 413,
      body: { reason: "text_too_large", detail: expect.stringContaining("131072") },
    });
  });
});

describe("lists", () => {
  test("of runs show the beginning of large prompts", async () => {
    const uids = await Promise.all(Array.from({ length: 20 }, () => startRun(LARGEST)));
    const short = await startRun("short");
    const { runs } = await api.get("/agent/runs?limit=100&sort_by=created_at");
    const shown = new Map<string, any>(runs.map((run: any) => [run.run_id, run]));
    for (const uid of uids)
      expect(shown.get(uid)).toMatchObject({
        prompt: LARGEST.slice(0, PREVIEW),
        submitted_prompt: LARGEST.slice(0, PREVIEW),
        prompt_truncated: true,
      });
    expect(shown.get(short)).toMatchObject({ prompt: "short" });
    expect(shown.get(short)).not.toHaveProperty("prompt_truncated");
    expect((await api.get(`/agent/runs/${uids[0]}`)).prompt).toBe(LARGEST);
  });

  test("of schedules show the beginning of large prompts", async () => {
    const { id } = await api.post("/agent/schedules", { ...SCHEDULE, name: "large", prompt: LARGEST });
    const listed = (await api.get("/agent/schedules")).schedules.find((schedule: any) => schedule.id === id);
    expect(listed).toMatchObject({ prompt: LARGEST.slice(0, PREVIEW), prompt_truncated: true });
    expect(await api.get(`/agent/schedules/${id}`)).toMatchObject({ prompt: LARGEST });
  });

  test("of follow-ups end a page early when their texts are large, and lose none", async () => {
    const run = await startRun("p");
    await api.post(`/agent/runs/${run}/cancel`);
    const lengths = [900_000, 1, 100_000];
    for (const length of lengths) await api.post(`/agent/runs/${run}/followups`, { message: "m".repeat(length) });
    const found: number[] = [];
    for (let cursor = ""; ;) {
      const page = await api.get(`/agent/runs/${run}/followups?limit=2${cursor}`);
      found.push(...page.followups.map(({ message }: { message: string }) => message.length));
      if (!page.page_info.has_next_page) break;
      cursor = `&cursor=${page.page_info.next_cursor}`;
    }
    expect(found).toEqual(lengths);
  });
});

test.each(["note", "ticket_url"])("the metadata %s of a run or schedule has at most 256 bytes", async (key) => {
  for (const [value, statuses] of [
    ["é".repeat(128), [200, 201]],
    ["é".repeat(129), [400, 400]],
  ] as const) {
    const metadata = { [key]: value };
    const run = await api.call("POST", "/agent/runs", { body: { prompt: "p", metadata } });
    const schedule = await api.call("POST", "/agent/schedules", { body: { ...SCHEDULE, prompt: "p", metadata } });
    expect([run.status, schedule.status]).toEqual(statuses);
  }
});
