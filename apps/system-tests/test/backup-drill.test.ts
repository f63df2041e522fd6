import { createHash } from "node:crypto";
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { EmbeddedPostgres } from "@millwright/database";
import { Platform } from "@millwright/test-platform";
import { eventually } from "@millwright/testing";
import { millwrightAdmin } from "./support/admin.ts";
import { connect, type Client } from "./support/client.ts";
import { script, startRun, succeeded } from "./support/runs.ts";
import { aFactory, definitionFiles, teamOf } from "./support/resources.ts";

let platform: Platform;
let restored: Platform | undefined;
let server: EmbeddedPostgres;
let api: Client;
beforeAll(async () => {
  platform = await Platform.start();
  api = await connect(platform);
  server = await EmbeddedPostgres.start({ dataDir: platform.path("new-cluster") });
});
afterAll(async () => {
  await restored?.remove();
  await platform?.remove();
  await server?.stop();
});

const data = (...names: string[]): string => platform.path("data", ...names);

/** Returns the SHA-256 of the answer of each path, with the platform's own address left out. */
async function hashes(of: Client, paths: readonly string[]): Promise<Record<string, string>> {
  const found = await Promise.all(
    paths.map(async (path) => {
      const { status, body } = await of.call("GET", path);
      const text = JSON.stringify({ status, body })
        .replaceAll(of.url, "http://platform")
        .replaceAll(/(?:exp|sig|view)=[\w%~.-]+/g, "");
      return [path, createHash("sha256").update(text).digest("hex")] as const;
    }),
  );
  return Object.fromEntries(found);
}

test("a backup under load is restored on a new server: the same answers, files, secrets and positions", async () => {
  const team = await teamOf(api);
  const factory = await aFactory(api, definitionFiles(script("say: hello")));
  const hook = await api.post(`/factory/${factory}/webhooks`, { name: "builds" });
  const deliver = (url: string) =>
    fetch(url, { method: "POST", headers: { authorization: `Bearer ${hook.secret}` }, body: '{"build":1}' });
  expect((await deliver(hook.ingress_url)).status).toBe(202);
  await api.put(`/team/${team}/secrets/TOKEN`, { value: "a secret" });
  const run = await succeeded(
    api,
    await startRun(api, script("write: {path: a.txt, content: kept}", "artifact: a.txt")),
  );
  const dispatched = (await api.post(`/factory/${factory}/runs`, { prompt: script("say: dispatched") })).run_id;
  await succeeded(api, dispatched);
  const artifact = run.artifacts[0].data.artifact_uid as string;
  const paths = [
    `/agent/runs/${run.run_id}`,
    `/agent/runs/${dispatched}`,
    `/agent/runs/${run.run_id}/timeline`,
    `/factory/${factory}`,
    `/factory/${factory}/source`,
    `/factory/${factory}/webhooks`,
    `/factory/${factory}/automations`,
    `/team/${team}/members`,
    `/team/${team}/secrets`,
    "/agent/identities",
    "/agent/models",
  ];
  const before = await hashes(api, paths);

  const end = new AbortController();
  const created: string[] = [];
  const busy = (async () => {
    while (!end.signal.aborted) created.push((await api.post("/factory", { name: "Busy" })).uid);
  })();
  await eventually(() => created.length > 0);
  const target = platform.path("backup");
  const made = await millwrightAdmin(["backup", target], { MILLWRIGHT_DATA_DIR: data() });
  end.abort();
  await busy;
  expect(made).toMatchObject({ code: 0, output: expect.stringContaining("Master key") });
  expect(await hashes(api, paths)).toEqual(before);
  const key = readFileSync(data("master.key"), "utf8").trim();
  const files = readdirSync(target, { withFileTypes: true, recursive: true }).filter((entry) => entry.isFile());
  expect(files.filter(({ name, parentPath }) => readFileSync(join(parentPath, name)).includes(key))).toEqual([]);
  await platform.stop();

  const url = server.url("postgres");
  const env = { MILLWRIGHT_DATABASE_URL: url, BLOB_DIR: platform.path("restored", "data", "blobs") };
  expect(await millwrightAdmin(["restore", target], env)).toMatchObject({
    code: 0,
    output: expect.stringContaining("Restored"),
  });
  expect(await millwrightAdmin(["restore", target], env)).toMatchObject({
    code: 1,
    output: expect.stringContaining("restore into an empty one"),
  });
  copyFileSync(data("master.key"), platform.path("restored", "data", "master.key"));
  restored = await Platform.start({
    env: { MILLWRIGHT_DATABASE_URL: url, MILLWRIGHT_DATA_DIR: platform.path("restored", "data") },
  });
  const other = await connect(restored);
  expect(await hashes(other, paths)).toEqual(before);
  const { headers } = await other.call("GET", `/agent/artifacts/${artifact}/download`);
  expect(await (await fetch(headers.get("location")!)).text()).toBe("kept");
  // The secret of the webhook is decrypted: a wrong one is rejected with 401.
  expect((await deliver(hook.ingress_url.replace(platform.url, restored.url))).status).toBe(202);
  const states = await Promise.all(created.map(async (uid) => (await other.call("GET", `/factory/${uid}`)).status));
  expect(states).toEqual(states.toSorted((a, b) => a - b)); // of one instant: none after the first that is missing
  await succeeded(other, await startRun(other, script("say: continues")));
  await succeeded(other, (await other.post(`/factory/${factory}/runs`, { prompt: script("say: more") })).run_id);
});

test("a restore needs the release that made the backup, and a whole backup", async () => {
  const target = platform.path("backup");
  const file = join(target, "databases", "scoring", "dump.json");
  const dump = JSON.parse(readFileSync(file, "utf8"));
  writeFileSync(file, JSON.stringify({ ...dump, migrations: ["0001_init", "9999_later"] }));
  const other = await EmbeddedPostgres.start({ dataDir: platform.path("third-cluster") });
  try {
    const env = { MILLWRIGHT_DATABASE_URL: other.url("postgres"), BLOB_DIR: platform.path("unused") };
    expect(await millwrightAdmin(["restore", target], env)).toMatchObject({
      code: 1,
      output: expect.stringContaining("restore it with the release that made it"),
    });
  } finally {
    await other.stop();
  }
  expect(await millwrightAdmin(["restore", platform.path("nothing")], {})).toMatchObject({ code: 2 });
});
