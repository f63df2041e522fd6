import { expect, test } from "@jest/globals";
import { newUid, type RunUid } from "@millwright/ids";
import { domainError } from "@millwright/testing";
import { checkNewRun, titleOf, type NewRun } from "./new-run.ts";

const aRun = (run: Partial<NewRun> = {}): NewRun => ({
  prompt: "Fix the test.",
  config: {},
  mode: "normal",
  owner: { type: "team", uid: "t" },
  interactive: false,
  metadata: {},
  source: "API",
  attachments: [],
  ...run,
});

const file = (bytes: number) => ({ fileName: "a", mimeType: "text/plain", data: new Uint8Array(bytes) });

test.each<[Partial<NewRun>, string]>([
  [{ prompt: " \n" }, "prompt_required"],
  [{ prompt: "", config: { skills: [] } }, "prompt_required"],
  [{ mode: "fast" }, "mode_unknown"],
  [{ source: "FAX" }, "source_unknown"],
  [{ attachments: Array.from({ length: 6 }, () => file(1)) }, "attachments_invalid"],
  [{ attachments: [file(10_000_001)] }, "attachments_invalid"],
  [{ attachments: [file(10_000_001)], origin: "dispatch" }, "attachments_invalid"],
  [{ attachments: [file(25 * 1024 * 1024 + 1)], origin: "automation" }, "attachments_invalid"],
  [{ metadata: { "a b": "" } }, "metadata_invalid"],
  [{ metadata: { a: "é".repeat(129) } }, "metadata_invalid"],
  [{ metadata: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`k${n}`, ""])) }, "metadata_invalid"],
])("case %# is refused: %s", (run, reason) =>
  expect(() => checkNewRun(aRun(run))).toThrow(domainError({ kind: "invalid_argument", reason })),
);

test.each<Partial<NewRun>>([
  {},
  { prompt: "", skill: "repo:name" },
  { prompt: "", config: { skill_spec: "o/r:p" } },
  { prompt: "", conversationUid: "c" },
  { metadata: { "A.b_c-9": "é".repeat(128) } },
])("%j is accepted", (run) => expect(() => checkNewRun(aRun(run))).not.toThrow());

test("event payloads of automations and their retries may have 25 MB, other attachments 10 MB", () => {
  expect(() => checkNewRun(aRun({ attachments: [file(25 * 1024 * 1024)], origin: "automation" }))).not.toThrow();
  expect(() =>
    checkNewRun(aRun({ attachments: [file(25 * 1024 * 1024)], retryOfRunUid: newUid<RunUid>() })),
  ).not.toThrow();
  expect(() => checkNewRun(aRun({ attachments: [file(10_000_000)] }))).not.toThrow();
});

test.each<[Partial<NewRun>, string]>([
  [{ title: "  Given " }, "Given"],
  [{ title: "x".repeat(500) }, "x".repeat(500)],
  [{ prompt: "\n```scripted\n# Fix it\nmore" }, "Fix it"],
  [{ prompt: "x".repeat(100) }, `${"x".repeat(79)}…`],
  [{ prompt: "" }, "implementer"],
])("the title of %j is %s", (run, expected) => expect(titleOf(aRun(run), "implementer")).toBe(expected));
