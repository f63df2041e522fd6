import { readFileSync } from "node:fs";

/**
 * Returns the text of a source file with the arguments of each call on the line of the call, regardless of how the
 * formatter wrapped them.
 */
export const readJoinedCalls = (path: string): string => readFileSync(path, "utf8").replaceAll(/([(,])\n\s*/g, "$1");
