import { readFile } from "node:fs/promises";
import { parseExactly } from "@millwright/payload-filter";
import { UsageError } from "./command.ts";

const REASONS: Record<string, string> = {
  ENOENT: "there is no such file",
  EISDIR: "it is a directory",
  EACCES: "it may not be read",
};

/** Reads a file that the command line names. Throws `UsageError` if it cannot be read. */
export async function readNamed(path: string): Promise<Buffer> {
  return readFile(path).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`Cannot read ${path}: ${REASONS[error.code ?? ""] ?? error.message}.`);
  });
}

export const readText = async (path: string): Promise<string> => (await readNamed(path)).toString("utf8");

/** Parses JSON and preserves numbers exactly as they are written. */
export async function readJson(path: string): Promise<unknown> {
  const text = await readText(path);
  try {
    return parseExactly(text);
  } catch (error) {
    throw new UsageError(`${path} is not JSON: ${(error as Error).message}`);
  }
}
