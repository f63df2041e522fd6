/* oxlint-disable jest/no-standalone-expect -- declare() declares the test */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "@jest/globals";
import { eventually, type ApiResponse } from "@millwright/testing";
import { Platform } from "@millwright/test-platform";
import { connect } from "./support/client.ts";

/** Slightly more than the databases of a new platform need. */
const DISK_MB = 300;
const PROMPT_BYTES = 200_000;
const REQUESTS_MAX = 200;

const disk = mkdtempSync(join(tmpdir(), "millwright-full-disk-"));
const isMounted = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_MB}m`, "tmpfs", disk]).status === 0;
const declare = isMounted || process.env["CI"] === "true" ? test : test.skip;

let platform: Platform | undefined;
afterAll(async () => {
  await platform?.remove();
  if (isMounted) spawnSync("umount", ["-l", disk]);
  rmSync(disk, { recursive: true });
});

/**
 * Writes until the disk is full, including space released while writing. Throws any error other than that of a full
 * disk.
 */
function fill(path: string): void {
  const chunk = Buffer.alloc(1 << 16);
  for (const size of [chunk.length, 1]) {
    for (;;) {
      try {
        writeFileSync(path, chunk.subarray(0, size), { flag: "a" });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
        break;
      }
    }
  }
}

const name = "a full disk refuses what cannot be stored, ends no process, and needs no restart once space is free";
declare(isMounted ? name : `${name} (needs the right to mount)`, async () => {
  const data = join(disk, "data");
  platform = await Platform.start({ env: { MILLWRIGHT_DATA_DIR: data } });
  const api = await connect(platform);
  const pid = readFileSync(join(data, "standalone.pid"), "utf8");
  const create = () =>
    api.call("POST", "/agent/runs", { body: { prompt: randomBytes(PROMPT_BYTES / 2).toString("hex") } });
  expect((await create()).status).toBe(200);

  const ballast = join(disk, "ballast");
  fill(ballast);
  const refused: ApiResponse[] = [];
  for (let sent = 0; sent < REQUESTS_MAX && !refused.some(({ body }) => body.reason === "storage_full"); sent++) {
    fill(ballast);
    const answer = await create();
    if (answer.status !== 200) refused.push(answer);
  }
  const full = refused.find(({ body }) => body.reason === "storage_full");
  expect(full).toMatchObject({ status: 500, body: { error_code: "resource_unavailable", reason: "storage_full" } });
  expect(full!.headers.get("content-type")).toContain("application/problem+json");
  expect(
    refused
      .filter(({ body }) => !["storage_full", "service_unavailable"].includes(body.reason))
      .map(({ body }) => body),
  ).toEqual([]);

  // PostgreSQL exits if it cannot write its write-ahead log, and cannot start while the disk is full.
  process.kill(
    Number(readFileSync(join(data, "postgres", "cluster", "postmaster.pid"), "utf8").split("\n")[0]),
    "SIGKILL",
  );
  await eventually(async () => (await create()).body.reason === "service_unavailable");
  await eventually(async () => (await fetch(`${platform!.url}/readyz`)).status === 503);
  fill(ballast);
  expect((await fetch(`${platform.url}/healthz`)).status).toBe(200);

  rmSync(ballast);
  const { body } = await eventually(async () => {
    const answer = await create();
    expect(answer.status).toBe(200);
    return answer;
  });
  expect((await api.get(`/agent/runs/${body.run_id}`)).run_id).toBe(body.run_id);
  await eventually(async () => (await fetch(`${platform!.url}/readyz`)).status === 200);
  expect(readFileSync(join(data, "standalone.pid"), "utf8")).toBe(pid);
  await eventually(() =>
    readFileSync(join(data, "logs", "millwright.log"), "utf8").includes("log lines could not be written and are lost"),
  );
  expect(await platform.stop()).toEqual([]);
});
