import { readFileSync } from "node:fs";

/** Returns a source file with the arguments of each call on the line of the call, however the formatter broke them. */
export const readJoinedCalls = (path: string): string => readFileSync(path, "utf8").replaceAll(/([(,])\n\s*/g, "$1");
