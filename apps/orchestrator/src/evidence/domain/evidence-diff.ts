import type { RunEvent } from "../../runs/domain/run-events.ts";
import type { JsonObject, JsonValue } from "../../runs/domain/run.ts";

/** Maximum size of all diffs of one run, in bytes of UTF-8. */
export const EVIDENCE_DIFF_BYTES_MAX = 1024 * 1024;

/**
 * Returns the files that the built-in tools of the agent wrote and edited, in order, as unified diffs. Hunks have no
 * line numbers, because positions in the files are unknown. The previous content of a file that was written as a whole
 * is unknown too. Failed calls and calls of third-party harnesses are left out.
 */
export function editDiffs(events: readonly RunEvent[]): string {
  const completed = new Set(
    events
      .filter(({ kind, payload }) => kind === "tool_end" && payload["state"] === "completed")
      .map(({ payload }) => payload["call_id"]),
  );
  const calls = events
    .filter(({ kind, isSuperseded }) => kind === "model_step" && !isSuperseded)
    .flatMap(({ payload }) => objectsOf(payload["tool_calls"]));
  return calls
    .filter((call) => completed.has(call["call_id"]))
    .map(diffOf)
    .join("");
}

function diffOf(call: JsonObject): string {
  const { path, content, old, new: replacement } = objectOf(call["input"]);
  if (typeof path !== "string") return "";
  if (call["name"] === "write_file" && typeof content === "string")
    return `--- /dev/null\n+++ b/${path}\n@@ whole file @@\n${lines("+", content)}`;
  if (call["name"] === "edit_file" && typeof old === "string" && typeof replacement === "string")
    return `--- a/${path}\n+++ b/${path}\n@@ edit @@\n${lines("-", old)}${lines("+", replacement)}`;
  return "";
}

const lines = (sign: string, text: string): string =>
  text === ""
    ? ""
    : text
        .replace(/\n$/, "")
        .split("\n")
        .map((line) => `${sign}${line}\n`)
        .join("");

/**
 * Returns the non-empty sections, each under its title. If they exceed the limit, they are cut and a line states it.
 */
export function joinDiffs(
  sections: readonly { readonly title: string; readonly text: string }[],
  bytesMax = EVIDENCE_DIFF_BYTES_MAX,
): string {
  const whole = sections
    .filter(({ text }) => text !== "")
    .map(({ title, text }) => `# ${title}\n${text}${text.endsWith("\n") ? "" : "\n"}`)
    .join("\n");
  const bytes = Buffer.from(whole);
  if (bytes.length <= bytesMax) return whole;
  const note = `\n# The diff is cut here: it has ${bytes.length} bytes, the limit is ${bytesMax}.\n`;
  const shown = new TextDecoder()
    .decode(bytes.subarray(0, bytesMax - Buffer.byteLength(note) - 3))
    .replace(/\uFFFD+$/, "");
  return shown + note;
}

const objectOf = (value: JsonValue | undefined): JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
const objectsOf = (value: JsonValue | undefined): JsonObject[] => (Array.isArray(value) ? value.map(objectOf) : []);
