import { readFileSync } from "node:fs";

/** The text that a service's first migration contains, and that `missingTables` of the testing library compares. */
export const WORK_TABLES_SQL: string = readFileSync(new URL("../sql/tables.sql", import.meta.url), "utf8");
