import { readFileSync } from "node:fs";

/** What a service's migrations come to, and `missingTables` of the testing library compares. */
export const WORK_TABLES_SQL: string = readFileSync(new URL("../sql/tables.sql", import.meta.url), "utf8");
