import { expect, test } from "@jest/globals";
import { EVIDENCE_DIFF_BYTES_MAX, joinDiffs } from "./evidence-diff.ts";

test("sections without a text are left out", () =>
  expect(
    joinDiffs([
      { title: "One", text: "" },
      { title: "Two", text: "+a" },
    ]),
  ).toBe("# Two\n+a\n"));

test("diffs that are too large are cut, with a line that states the size and the limit", () => {
  const cut = joinDiffs([{ title: "One", text: "+ä".repeat(EVIDENCE_DIFF_BYTES_MAX) }]);
  expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(EVIDENCE_DIFF_BYTES_MAX);
  expect(Buffer.byteLength(cut)).toBeGreaterThan(EVIDENCE_DIFF_BYTES_MAX - 16);
  expect(cut).toMatch(/\n# The diff is cut here: it has 3145735 bytes, the limit is 1048576\.\n$/);
  expect(cut).not.toContain("\uFFFD");
});
