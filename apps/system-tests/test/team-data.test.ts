import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Platform } from "@millwright/test-platform";
import { millwrightAdmin } from "./support/admin.ts";
import { findEverywhere } from "./support/canaries.ts";
import { connect, type Client } from "./support/client.ts";
import { script, startRun, succeeded } from "./support/runs.ts";
import { aFactory, aTeam, definitionFiles, teamOf } from "./support/resources.ts";

const CANARY = "canary7f3a91";
const SECRET = `${CANARY}-value-of-a-secret`;

let platform: Platform;
let other: Client;
let owner: Client;
let team: string;
let run: any;
beforeAll(async () => {
  platform = await Platform.start();
  other = await connect(platform);
  owner = await aTeam(other, CANARY);
  team = await teamOf(owner);
  await fill(owner, CANARY);
  await fill(other, "neighbour");
});
afterAll(() => platform?.remove());

/** Gives a team something of everything, with `word` in every text. */
async function fill(api: Client, word: string): Promise<void> {
  const factory = await aFactory(api, definitionFiles(script(`say: ${word}`)), { name: word, description: word });
  const hook = await api.post(`/factory/${factory}/webhooks`, { name: word });
  const delivery = await fetch(hook.ingress_url, {
    method: "POST",
    headers: { authorization: `Bearer ${hook.secret}` },
    body: JSON.stringify({ text: word }),
  });
  expect(delivery.status).toBe(202);
  const owned = await teamOf(api);
  await api.put(`/team/${owned}/secrets/TOKEN`, { value: `${word}-value-of-a-secret` });
  await api.post(`/team/${owned}/members`, { email: `${word}@example.com`, role: "member" });
  await api.post(`/team/${owned}/budgets`, { scope: "team", period: "month", limit_usd: 100 });
  await api.post("/agent/environments", { config: { name: word, setup_commands: [`echo ${word}`] } });
  await api.post("/agent/schedules", { name: word, cron_schedule: "0 0 1 1 *", prompt: word });
  await api.post("/agent/identities", { name: word, prompt: word });
  const steps = [`write: {path: a.txt, content: ${word}}`, "artifact: a.txt", `say: ${word}`];
  const found = await succeeded(
    api,
    await startRun(api, script(...steps), {
      title: word,
      attachments: [{ file_name: `${word}.txt`, mime_type: "text/plain", data: Buffer.from(word).toString("base64") }],
    }),
  );
  await succeeded(api, (await api.post(`/factory/${factory}/runs`, { prompt: script(`say: ${word}`) })).run_id);
  if (word === CANARY) run = found;
}

const data = (...names: string[]): string => platform.path("data", ...names);
const admin = (...args: string[]) => millwrightAdmin(args, { MILLWRIGHT_DATA_DIR: data() });
const search = (...texts: string[]) => findEverywhere({ dir: data("blobs"), postgres: data("postgres") }, texts);

const filesBelow = (directory: string): string[] =>
  readdirSync(directory, { withFileTypes: true, recursive: true }).flatMap((entry) =>
    entry.isFile() ? [join(entry.parentPath, entry.name).slice(directory.length + 1)] : [],
  );

test("an export has the rows and files of the team, without secrets and without those of another team", async () => {
  const target = platform.path("export");
  expect(await admin("team", "export", team, target)).toMatchObject({ code: 0 });
  const files = filesBelow(target);
  const text = files.map((file) => readFileSync(join(target, file), "latin1")).join("\n");
  for (const file of ["gateway/agents", "orchestrator/runs", "orchestrator/run_events", "webhook-ingress/deliveries"])
    expect(readFileSync(join(target, `${file}.ndjson`), "utf8")).not.toBe("");
  expect(readFileSync(join(target, "gateway", "agents.ndjson"), "utf8")).toContain(CANARY);
  expect(files.filter((file) => file.startsWith(`files/artifacts/${run.run_id}/`))).toHaveLength(1);
  expect(files.some((file) => file.startsWith("files/attachments/"))).toBe(true);
  expect(text).not.toContain(SECRET);
  expect(text).not.toContain("v1."); // the beginning of sealed records
  expect(text).not.toContain("neighbour");
  const manifest = JSON.parse(readFileSync(join(target, "manifest.json"), "utf8"));
  expect(manifest.rows["orchestrator/runs.ndjson"]).toBe(2);
  expect(await admin("team", "export", team, target)).toMatchObject({ code: 2 });
});

test("an erasure needs the team's name and no active run", async () => {
  expect(await admin("team", "erase", team)).toMatchObject({
    code: 2,
    output: expect.stringContaining(`--confirm '${CANARY}'`),
  });
  const active = await startRun(owner, script("ask: Go on?"));
  const waiting = await startRun(owner, script("shell: sleep 600"));
  expect(await admin("team", "erase", team, "--confirm", CANARY)).toMatchObject({
    code: 1,
    output: expect.stringContaining("The team has active runs"),
  });
  await owner.post(`/agent/runs/${waiting}/cancel`, {});
  await owner.post(`/agent/runs/${active}/cancel`, {}).catch(() => {}); // it may be blocked, which is an end
  expect((await owner.get(`/agent/runs/${run.run_id}`)).state).toBe("SUCCEEDED");
});

test("an erasure leaves nothing of the team in any database or file, and everything of other teams", async () => {
  expect(await search(CANARY)).not.toEqual([]);
  const before = await search("neighbour");
  expect(await admin("team", "erase", team, "--confirm", CANARY)).toMatchObject({
    code: 0,
    output: expect.stringContaining("Erased"),
  });
  expect(await search(CANARY)).toEqual([]);
  expect((await search("neighbour")).length).toBe(before.length);
  expect((await owner.call("GET", "/whoami")).status).toBe(401);
  expect((await other.get("/agent/runs")).runs.length).toBeGreaterThan(0);
  await succeeded(other, await startRun(other, script("say: continues")));
  expect(await search(CANARY)).toEqual([]);
  expect(await admin("team", "erase", team, "--confirm", CANARY)).toMatchObject({
    code: 2,
    output: expect.stringContaining("There is no team"),
  });
});
