import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "@jest/globals";
import { fakeApi } from "./fake-api.ts";

const { answers, url } = fakeApi();
const BIN = fileURLToPath(new URL("../bin/millwright.mjs", import.meta.url));

const start = (...argv: string[]) =>
  spawn(process.execPath, [BIN, ...argv], {
    env: { ...process.env, MILLWRIGHT_URL: url(), MILLWRIGHT_API_KEY: "mw_test" },
  });

test("a transcript is printed, and exits 0", async () => {
  answers["GET /api/v1/agent/runs/r1/transcript"] = { status: 200, text: '{"seq":1}\n' };
  const child = start("run", "transcript", "r1");
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  expect([code, out, err]).toEqual([0, '{"seq":1}\n', ""]);
});

test("a closed output pipe ends the command without an error message", async () => {
  answers["GET /api/v1/agent/runs/r1/transcript"] = { status: 200, text: `${"x".repeat(500_000)}\n` };
  const child = start("run", "transcript", "r1");
  child.stdout.destroy();
  const [err, [code]] = await Promise.all([text(child.stderr), once(child, "exit")]);
  expect([code, err]).toEqual([0, ""]);
});

describe("doctor", () => {
  const doctor = async (env: Record<string, string>) => {
    const child = spawn(process.execPath, [BIN, "doctor", "--json"], { env: { ...process.env, ...env } });
    const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
    return { code, err, checks: out === "" ? undefined : (JSON.parse(out) as unknown) };
  };

  test("reports each address that does not serve, and exits 1", async () => {
    expect(
      await doctor({ GATEWAY_URL: "http://127.0.0.1:1, nowhere", METRICS_URL: "http://127.0.0.1:2" }),
    ).toMatchObject({
      code: 1,
      checks: [
        { check: "gateway", address: "http://127.0.0.1:1", problem: expect.stringContaining("ECONNREFUSED") },
        { check: "gateway", address: "nowhere", problem: "it is not an absolute URL" },
        { check: "metrics", address: "http://127.0.0.1:2", problem: expect.stringContaining("ECONNREFUSED") },
      ],
    });
  });

  test("without an address is wrong usage", async () =>
    expect(await doctor({})).toMatchObject({ code: 2, err: expect.stringContaining("Set GATEWAY_URL") }));
});

describe("completion", () => {
  const complete = async (...words: string[]) => {
    const child = start("complete", "--", ...words);
    return (await text(child.stdout)).split("\n").map((line) => line.split("\t")[0]!);
  };

  test.each([
    [["ru"], ["run"]],
    [["run", "re"], ["retry"]],
    [["run", "create", "--ti"], ["--title"]],
    [["run", "list", "--state", "QUE"], ["QUEUED"]],
    [["task", "move", "t1", "SP"], ["SPEC"]],
  ])("of %j is %j", async (words, candidates) => {
    expect((await complete(...words)).filter((line) => /^[\w-]/.test(line))).toEqual(candidates);
  });

  test.each(["bash", "zsh", "fish"])("the script for %s calls the client", async (shell) => {
    const child = start("completion", shell);
    const [script, [code]] = await Promise.all([text(child.stdout), once(child, "exit")]);
    expect([code, script]).toEqual([0, expect.stringMatching(/millwright complete --/)]);
  });
});
