import { expect, test } from "@jest/globals";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { storeTranscript } from "./store-transcript.ts";

async function kept(file: string, unknown: string[]): Promise<string[]> {
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
  ["with which nothing else was said, which is kept as it is", '{}\n{"half', [], '{}\n{"half'],
])("unknown lines stand on lines of their own behind a session %s", async (_which, file, unknown, transcript) => {
  expect(await kept(file, unknown)).toEqual([transcript]);
});
