import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { maskText, spellingsOf, StreamMasker } from "./mask.ts";

const SECRET = 'p4ss "word"/ä+1';
const masked = (text: string, ...secrets: string[]): string => maskText(text, spellingsOf(secrets));
const inPieces = (secrets: readonly string[], pieces: readonly Uint8Array[]): string => {
  const masker = new StreamMasker(secrets);
  return Buffer.concat([...pieces.map((piece) => masker.push(piece)), masker.end()]).toString("utf8");
};

describe("a secret is masked", () => {
  test.each([
    ["as it is", SECRET],
    ["in JSON", JSON.stringify(SECRET).slice(1, -1)],
    ["in a URL", encodeURIComponent(SECRET)],
    ["in a form", encodeURIComponent(SECRET).replaceAll("%20", "+")],
    [
      "in a URL with small letters",
      encodeURIComponent(SECRET).replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
    ],
    ["in hexadecimal", Buffer.from(SECRET).toString("hex")],
  ])("%s", (_name, spelled) => expect(masked(`<${spelled}>`, SECRET)).toBe("<***>"));

  test.each(["", "u", "us", "user:", "a longer beginning "])(
    "in base64 after %j, except for the characters that it shares with adjacent bytes",
    (before) => {
      for (const encoding of ["base64", "base64url"] as const) {
        const shown = masked(Buffer.from(`${before}${SECRET} and more`).toString(encoding), SECRET);
        expect(shown).toContain("***");
        const left = Buffer.from(shown.replace("***", "AAAA"), encoding).toString("latin1");
        expect(left).not.toMatch(/4ss|word/);
      }
    },
  );

  test("that is long, in base64 with line breaks", () => {
    const long = Array.from({ length: 40 }, (_, index) => `part${index}`).join("-");
    const lines = Buffer.from(long)
      .toString("base64")
      .match(/.{1,76}/g)!;
    expect(masked(lines.join("\n"), long).replaceAll("***", "").trim().length).toBeLessThan(16);
  });
});

test("a short value or an ordinary text is not masked", () => {
  expect(masked("abc YWJj 616263", "abc")).toBe("abc YWJj 616263");
  expect(masked("nothing of it here", SECRET)).toBe("nothing of it here");
});

describe("a stream", () => {
  const secrets = ["hunter2", "hunter2-and-more", "line one\nline two is long enough"];

  test.each(secrets)("shows nothing of %j wherever it is cut", (secret) => {
    const whole = Buffer.from(`before ${secret} after hunter`);
    for (let first = 0; first <= whole.length; first += 1) {
      for (let second = first; second <= whole.length; second += 3) {
        expect(
          inPieces(secrets, [whole.subarray(0, first), whole.subarray(first, second), whole.subarray(second)]),
        ).toBe("before *** after hunter");
      }
    }
  });

  test("gives the same result in pieces as in one part, for any bytes", () => {
    const piece = fc.oneof(fc.constantFrom("hunter2", "hunter", "2", "-and-more", "line one\n", "ä"), fc.string());
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const whole = pieces.join("");
        expect(
          inPieces(
            secrets,
            pieces.map((part) => Buffer.from(part)),
          ),
        ).toBe(inPieces(secrets, [Buffer.from(whole)]));
        expect(
          inPieces(
            [],
            pieces.map((part) => Buffer.from(part)),
          ),
        ).toBe(Buffer.from(whole).toString("utf8"));
      }),
      { numRuns: 300 },
    );
  });
});
