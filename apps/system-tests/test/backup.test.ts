import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import { Platform } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { script, startRun, succeeded } from "./support/runs.ts";
import { aFactory, definitionFiles } from "./support/resources.ts";

const CLI = fileURLToPath(new URL("../../cli/bin/millwright.mjs", import.meta.url));

let platform: Platform;
let api: Client;
beforeAll(async () => {
  platform = await Platform.start();
  api = await connect(platform);
});
afterAll(() => platform?.remove());

const data = (...names: string[]): string => platform.path("data", ...names);

/** Runs the command line client on the platform's machine with a configuration of its own. */
async function millwright(...args: string[]): Promise<{ code: number | null; output: string }> {
  const env = { PATH: process.env["PATH"], HOME: platform.path("home"), MILLWRIGHT_DATA_DIR: data() };
  const child = spawn(process.execPath, [CLI, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output };
}

/** Returns the output of a start that must fail. */
async function failedStart(): Promise<string> {
  const outcome = await platform.start().then(
    () => "it started",
    (error: Error) => error.message,
  );
  return outcome;
}

const filesBelow = (directory: string): string[] =>
  readdirSync(directory, { withFileTypes: true, recursive: true }).flatMap((entry) =>
    entry.isFile() ? [join(entry.parentPath, entry.name)] : [],
  );
const modeOf = (path: string): number => statSync(path).mode & 0o777;

async function textOf(artifact: string): Promise<string> {
  const { headers } = await api.call("GET", `/agent/artifacts/${artifact}/download`);
  return (await fetch(headers.get("location")!)).text();
}

test("a running platform is backed up, and restored with databases, files and secrets of one instant", async () => {
  const factory = await aFactory(api, definitionFiles(script("say: hello")));
  const hook = await api.post(`/factory/${factory}/webhooks`, { name: "builds" });
  const deliver = () =>
    fetch(hook.ingress_url, { method: "POST", headers: { authorization: `Bearer ${hook.secret}` }, body: "{}" });
  expect((await deliver()).status).toBe(202);
  const run = await succeeded(
    api,
    await startRun(api, script("write: {path: a.txt, content: kept}", "artifact: a.txt")),
  );
  const artifact = run.artifacts[0].data.artifact_uid as string;

  const end = new AbortController();
  const created: string[] = [];
  const busy = (async () => {
    while (!end.signal.aborted) created.push((await api.post("/factory", { name: "Busy" })).uid);
  })();
  await eventually(() => created.length > 0);
  const { code, output } = await millwright("backup", platform.path("backups"));
  end.abort();
  await busy;
  expect([code, output]).toEqual([0, expect.stringContaining("Master key")]);
  const later = await startRun(api, script("say: after the backup"));

  const files = filesBelow(platform.path("backups"));
  expect(files.filter((file) => modeOf(file) !== 0o600)).toEqual([]);
  const key = readFileSync(data("master.key"), "utf8").trim();
  expect(files.filter((file) => readFileSync(file).includes(key))).toEqual([]);
  const [backup = ""] = readdirSync(platform.path("backups"));
  expect(readFileSync(platform.path("backups", backup, ".gitignore"), "utf8")).toBe("*\n");

  await platform.killEverything();
  rmSync(data(), { recursive: true });
  expect(await millwright("restore", platform.path("backups"))).toMatchObject({ code: 0 });
  await platform.start();

  expect((await api.get(`/agent/runs/${run.run_id}`)).state).toBe("SUCCEEDED");
  expect(await textOf(artifact)).toBe("kept");
  expect((await deliver()).status).toBe(202);
  expect((await api.call("GET", `/agent/runs/${later}`)).status).toBe(404);
  const restored = await Promise.all(created.map(async (uid) => (await api.call("GET", `/factory/${uid}`)).status));
  expect(restored[0]).toBe(200);
  // The restored state is of one point in time: everything created before it and nothing created later.
  expect(restored).toEqual(restored.toSorted((a, b) => a - b));
  await succeeded(api, await startRun(api, script("say: continues")));
  await succeeded(api, (await api.post(`/factory/${factory}/runs`, { prompt: script("say: continues") })).run_id);
});

test("a restore never overwrites a platform, and needs the right master key and the whole backup", async () => {
  await platform.stop();
  expect(await millwright("restore", platform.path("backups"))).toMatchObject({
    code: 1,
    output: expect.stringContaining("already contains a platform"),
  });

  renameSync(data(), platform.path("aside"));
  const wrong = platform.path("wrong.key");
  writeFileSync(wrong, `${Buffer.alloc(32, 1).toString("base64")}\n`, { mode: 0o600 });
  expect(await millwright("restore", platform.path("backups"), "--key-file", wrong)).toMatchObject({
    code: 1,
    output: expect.stringContaining("--key-file"),
  });

  const [backup = ""] = readdirSync(platform.path("backups"));
  const missing = platform.path("backups", backup, "cluster", "PG_VERSION");
  rmSync(missing);
  expect(await millwright("restore", platform.path("backups"))).toMatchObject({
    code: 1,
    output: expect.stringContaining("is incomplete"),
  });
  expect(existsSync(data("postgres", "cluster"))).toBe(false);

  rmSync(data(), { recursive: true, force: true });
  renameSync(platform.path("aside"), data());
});

test("a stopped platform is backed up too, and stays stopped", async () => {
  const { code } = await millwright(
    "backup",
    platform.path("offline"),
    "--key-file",
    platform.path("keys", "platform.key"),
  );
  expect([code, modeOf(platform.path("keys", "platform.key"))]).toEqual([0, 0o600]);
  expect([existsSync(data("standalone.pid")), existsSync(data("postgres", "cluster", "postmaster.pid"))]).toEqual([
    false,
    false,
  ]);
});

test("a start without the master key, or with another one, fails with the remedy and changes nothing", async () => {
  const key = data("master.key");
  renameSync(key, platform.path("master.key"));
  expect(await failedStart()).toMatch(/master\.key is missing.*Put the key back/);
  expect(existsSync(key)).toBe(false);

  writeFileSync(key, `${Buffer.alloc(32, 1).toString("base64")}\n`, { mode: 0o600 });
  expect(await failedStart()).toMatch(/is not the one of this platform.*Put back the original key/);

  rmSync(key);
  renameSync(platform.path("master.key"), key);
  await platform.start();
  await eventually(async () => (await api.call("GET", "/whoami")).status === 200);
});
