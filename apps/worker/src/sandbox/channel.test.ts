import { PassThrough } from "node:stream";
import { describe, expect, test } from "@jest/globals";
import { Channel } from "./channel.ts";
import { SandboxGone } from "./sandbox-errors.ts";
import { LINE_BYTES_MAX } from "./init/protocol.ts";

function aChannel() {
  const output = new PassThrough();
  let broken = 0;
  const channel = new Channel(new PassThrough(), output, () => (broken += 1));
  return { channel, output, broken: () => broken };
}

const value = { exitCode: 0, signal: null, timedOut: false, stopped: false, output: "", truncated: false, cwd: "/" };
const question = { op: "exec", run: { command: "true" }, cwd: "/", timeoutMs: 1 } as const;

describe("an agent that could write to the channel", () => {
  test.each([
    ["no JSON", "{"],
    ["no response", "[]"],
    ["a response without a request", JSON.stringify({ id: 7, ok: true, value })],
    ["a wrong type", JSON.stringify({ id: 1, ok: true, value: { ...value, exitCode: "0" } })],
    ["too much output", JSON.stringify({ id: 1, ok: true, value: { ...value, output: "x".repeat(70_000) } })],
    ["a line without end", "x".repeat(LINE_BYTES_MAX + 1)],
  ])("ends the sandbox with %s", async (_name, line) => {
    const { channel, output, broken } = aChannel();
    const { response } = channel.request(question);
    output.write(line.length > LINE_BYTES_MAX ? line : `${line}\n`);
    await expect(response).rejects.toThrow(/violated the protocol/);
    await expect(channel.request(question).response).rejects.toBeInstanceOf(SandboxGone);
    expect(broken()).toBe(1);
  });
});

test("responses are matched to requests in any order and in pieces", async () => {
  const { channel, output } = aChannel();
  const [first, second] = [channel.request(question), channel.request(question)];
  const text = [2, 1].map((id) => JSON.stringify({ id, ok: true, value: { ...value, exitCode: id } })).join("\n");
  output.write(text.slice(0, 40));
  output.write(`${text.slice(40)}\n`);
  expect([(await first.response).exitCode, (await second.response).exitCode]).toEqual([1, 2]);
});
