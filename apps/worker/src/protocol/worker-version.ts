import { readFileSync } from "node:fs";

/** The version of this package. It is sent to the platform, which refuses workers that are too old. */
export const { version: workerVersion } = JSON.parse(
  readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
) as { version: string };
