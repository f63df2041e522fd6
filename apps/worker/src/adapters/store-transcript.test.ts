import { expect, test } from "@jest/globals";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { storeTranscript } from "./store-transcript.ts";

async function storedTranscript(file: string, unknown: string[]): Promise<string[]> {
  const transcripts: string[] = [];
  const platform = {
    putTranscript: (content: Uint8Array) => (transcripts.push(Buffer.from(content).toString()), Promise.resolve()),
  };
  const sandbox = { workspace: "/w", readFile: () => Promise.resolve(Buffer.from(file)) };
  const events = unknown.map((line) => ({ kind: "harness_line", payload: { line } }));
  const log = { warn: (fields: unknown) => void transcripts.push(JSON.stringify(fields)) };
  await storeTranscript(
    { platform, mask: (text: string) => text, log } as unknown as Parameters<typeof storeTranscript>[0],
    sandbox as unknown as Sandbox,
    { id: "s", isResumed: false, file: "f" },
    events,
  );
  return transcripts;
}

test.each<[string, string, string[], string]>([
  ["that ends in a newline", "{}\n", ["odd", "odder"], "{}\nodd\nodder\n"],
  ["whose last line has no end", '{}\n{"half', ["odd"], '{}\n{"half\nodd\n'],
  ["without a word", "", ["odd"], "odd\n"],
  ["without unknown lines, which is unchanged", '{}\n{"half', [], '{}\n{"half'],
])("appends unknown lines on separate lines to a session %s", async (_which, file, unknown, transcript) => {
  expect(await storedTranscript(file, unknown)).toEqual([transcript]);
});
