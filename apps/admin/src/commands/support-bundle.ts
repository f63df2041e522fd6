import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { arch, cpus, platform, release, tmpdir, totalmem, uptime } from "node:os";
import { join, resolve } from "node:path";
import { databaseState } from "../bundle/database-state.ts";
import { logLines } from "../bundle/log-lines.ts";
import { settingsState } from "../bundle/settings-state.ts";
import { UsageError, type Command } from "../command.ts";
import { dataDirectoryOf, withPlatform } from "../platform.ts";
import { inspectPlatform } from "./doctor.ts";

export const supportBundle: Command = {
  words: "support-bundle",
  args: [],
  options: {
    "--out <file>": "the archive; by default millwright-support-<time>.tar.gz in the working directory",
    "--logs <directory>": "add the .log files below it; by default those of MILLWRIGHT_DATA_DIR",
  },
  summary: "Writes an archive for a problem report: versions, health, settings, queues, consumers, migrations, logs.",
  details: [
    "Contains no secret, prompt, payload, name or e-mail address; docs/operations/troubleshoot.md lists its content.",
  ],
  async run({ env, print }, _args, { out, logs }) {
    if (typeof logs === "string" && !existsSync(logs)) throw new UsageError(`${logs} does not exist.`);
    const data = dataDirectoryOf(env);
    const logDirectories = typeof logs === "string" ? [resolve(logs)] : [join(data, "logs"), join(data, "workers")];
    const now = new Date().toISOString();
    const name = `millwright-support-${now.replaceAll(/[-:]|\.\d+/g, "")}`;
    const archive = resolve(typeof out === "string" ? out : `${name}.tar.gz`);
    const draft = await mkdtemp(join(tmpdir(), "millwright-support-"));
    try {
      const content = join(draft, name);
      await mkdir(content, { mode: 0o700 });
      const write = (file: string, value: unknown): Promise<void> =>
        writeFile(join(content, file), `${JSON.stringify(value, null, 2)}\n`);
      await write("versions.json", versions(now));
      await write("settings.json", settingsState(env));
      await write(
        "health.json",
        (await inspectPlatform(env)).map(({ check, problem }) => ({ check, passed: !problem })),
      );
      await write("databases.json", await databasesState(env));
      for (const directory of logDirectories) await addLogs(directory, join(content, "logs"));
      await pack(draft, name, archive);
      print(`Support bundle  ${archive} (${(await stat(archive)).size} bytes)`);
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  },
};

const VERSION = (
  JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { version: string }
).version;

const versions = (at: string) => ({
  createdAt: at,
  millwright: VERSION,
  node: process.version,
  system: `${platform()} ${release()} ${arch()}`,
  processors: cpus().length,
  memoryBytes: totalmem(),
  uptimeSeconds: Math.round(uptime()),
});

async function databasesState(env: NodeJS.ProcessEnv): Promise<unknown> {
  try {
    return await withPlatform(env, async (databases) =>
      Object.fromEntries(
        await Promise.all(
          Object.entries(databases).map(async ([service, url]) => [service, await databaseState(url)] as const),
        ),
      ),
    );
  } catch (error) {
    return { error: (error as Error).name };
  }
}

/**
 * Adds the logs of a directory, and nothing below it, where workspaces of runs may be. The log of PostgreSQL is not
 * added: it contains statements with their values.
 */
async function addLogs(from: string, to: string): Promise<void> {
  const entries = existsSync(from) ? await readdir(from, { withFileTypes: true }) : [];
  for (const entry of entries.filter((found) => found.isFile() && found.name.endsWith(".log"))) {
    await mkdir(to, { recursive: true });
    await writeFile(join(to, entry.name), `${await logLines(join(from, entry.name))}\n`);
  }
}

async function pack(directory: string, name: string, archive: string): Promise<void> {
  const child = spawn("tar", ["-czf", archive, "-C", directory, name], { stdio: ["ignore", "ignore", "pipe"] });
  let output = "";
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`The archive ${archive} could not be written: ${output.trim()}`);
}
