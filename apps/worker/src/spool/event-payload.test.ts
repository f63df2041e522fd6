import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { fitPayload, jsonBytes, PAYLOAD_BYTES_MAX } from "./event-payload.ts";
import { Masker } from "./masker.ts";

describe("a payload", () => {
  test("that fits is unchanged", () => {
    const payload = { command: "npm test", exit_code: 0, output: "ok" };
    expect(fitPayload(payload)).toBe(payload);
  });

  test("with a long text retains its head and its tail", () => {
    const fitted = fitPayload({ call_id: "c1-1", output: `first ${"x".repeat(300_000)} last` });
    expect(fitted).toMatchObject({
      call_id: "c1-1",
      truncated: true,
      output: expect.stringMatching(/^first x+\n… \d+ characters omitted …\nx+ last$/),
    });
  });

  test("of thousands of short texts retains its short top-level values", () => {
    expect(fitPayload({ call_id: "c1-1", files: Array.from({ length: 20_000 }, (_, i) => `file-${i}`) })).toEqual({
      call_id: "c1-1",
      truncated: true,
    });
  });

  test("always fits in the end, and stays valid JSON", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })),
        fc.string({ unit: "binary", minLength: 0 }),
        (rest, text) => {
          const fitted = fitPayload({ ...(rest as object), output: text.repeat(10_000) }, PAYLOAD_BYTES_MAX);
          expect(jsonBytes(fitted)).toBeLessThanOrEqual(PAYLOAD_BYTES_MAX);
        },
      ),
      { numRuns: 10 },
    );
  });
});

describe("the masker", () => {
  test.each([
    ["every occurrence", ["hunter2"], "hunter2 and hunter2", "*** and ***"],
    ["the longer of two that overlap", ["hunter2", "hunter2-long"], "hunter2-long", "***"],
    ["many lines", ["line one\nline two"], "key: line one\nline two.", "key: ***."],
    ["nothing for values that would blot out ordinary text", ["abc"], "abc", "abc"],
    ["nothing for empty values", [""], "text", "text"],
    ["NUL, which cannot be stored", [], "a\0b", "a\uFFFDb"],
  ])("replaces %s", (_, secrets, text, expected) => expect(new Masker(secrets).text(text)).toBe(expected));

  test("does not mask ids and words of the protocol, whatever the secrets are", () => {
    const masker = new Masker(["user", "completed"]);
    expect(masker.payload({ role: "user", state: "completed", text: "user", output: { state: "completed" } })).toEqual({
      role: "user",
      state: "completed",
      text: "***",
      output: { state: "***" },
    });
  });

  test("masks before a text is cut, so that no half of a secret stays", () => {
    const secret = "s3cret".repeat(20);
    const masked = new Masker([secret]).payload({ output: `${"x".repeat(16_380)}${secret}${"y".repeat(200_000)}` });
    expect(JSON.stringify(fitPayload(masked))).not.toContain("s3cret");
  });
});
