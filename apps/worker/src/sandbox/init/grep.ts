/**
 * A plain text search for sandboxes without ripgrep: `node grep.ts <pattern> <directory>` prints `path:line:text`. It
 * is a separate process, so that a pattern that does not terminate is killed like any other command.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";

const MATCHES_MAX = 500;
const FILE_BYTES_MAX = 1024 * 1024;
const LINE_CHARACTERS_MAX = 300;
const SKIPPED_DIRECTORIES = new Set([".git", "node_modules"]);

const [pattern = "", top = "."] = process.argv.slice(2);
const expression = new RegExp(pattern);
let matches = 0;

function search(path: string): void {
  if (matches >= MATCHES_MAX) return;
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) {
    for (const child of readdirSync(path, { withFileTypes: true })) {
      if (!child.isSymbolicLink() && !SKIPPED_DIRECTORIES.has(child.name)) search(join(path, child.name));
    }
  } else if (found?.isFile() && found.size <= FILE_BYTES_MAX) searchFile(path);
}

function searchFile(path: string): void {
  const content = readFileSync(path);
  if (content.includes(0)) return; // binary file
  for (const [index, line] of content.toString("utf8").split("\n").entries()) {
    if (matches < MATCHES_MAX && expression.test(line)) {
      matches += 1;
      console.log(`${relative(process.cwd(), path)}:${index + 1}:${line.slice(0, LINE_CHARACTERS_MAX)}`);
    }
  }
}

search(top);
process.exitCode = matches > 0 ? 0 : 1;
