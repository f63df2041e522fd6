/** The maximum size of the first and of the last part of a command's output. */
const HALF_BYTES = 32 * 1024;
/**
 * The minimum interval of progress output for a command that has exceeded the limit: Gemini CLI kills commands that
 * write nothing for five minutes.
 */
const PROGRESS_INTERVAL_MS = 60_000;

/**
 * Returns the JavaScript module that Gemini CLI runs before its own code. Settings and environment files of a
 * repository could name servers, hooks and commands to run at startup, and override the user's settings. Files that
 * would override both must be owned by root, which no sandbox has, so the module hides the repository's files from the
 * program. With the Agent Client Protocol, the program also adds the whole output of a command to its context, and
 * aborts its turn if the context overflows. The module therefore removes the middle of long outputs.
 */
export const geminiGuard = (stateDir: string): string => `import fs from "node:fs";
import childProcess from "node:child_process";
import { syncBuiltinESMExports } from "node:module";

const { existsSync } = fs;
const isOfRepository = (path) => /[/](?:[.]gemini[/]settings[.]json|[.]env)$/.test(path) && !path.startsWith(${JSON.stringify(`${stateDir}/`)});
fs.existsSync = (path) => !isOfRepository(String(path)) && existsSync(path);

const HALF = ${HALF_BYTES};
function limit(stream) {
  const { emit } = stream;
  let head = 0, omitted = 0, shownAt = Date.now(), tail = Buffer.alloc(0);
  const cutTail = () => {
    if (tail.length <= HALF) return;
    omitted += tail.length - HALF;
    tail = tail.subarray(-HALF);
  };
  stream.emit = function (event, ...values) {
    const pass = (data) => emit.call(this, "data", data);
    if (event === "end" && tail.length > 0) {
      cutTail();
      if (omitted > 0) pass(Buffer.from("\\n… " + omitted + " bytes omitted …\\n"));
      pass(tail);
      tail = Buffer.alloc(0);
    }
    if (event !== "data") return emit.call(this, event, ...values);
    const data = Buffer.from(values[0]);
    const first = data.subarray(0, Math.max(0, HALF - head));
    head += first.length;
    tail = Buffer.concat([tail, data.subarray(first.length)]);
    if (tail.length > 4 * HALF) cutTail();
    if (first.length > 0) return pass(first);
    if (Date.now() - shownAt < ${PROGRESS_INTERVAL_MS}) return true;
    shownAt = Date.now();
    return pass(Buffer.from("\\n"));
  };
}

const { spawn } = childProcess;
childProcess.spawn = (file, ...rest) => {
  const child = spawn(file, ...rest);
  if (/(?:^|[/])(?:ba|da|z)?sh$/.test(String(file))) for (const stream of [child.stdout, child.stderr]) if (stream) limit(stream);
  return child;
};
syncBuiltinESMExports();`;
