import { readFileSync } from "node:fs";

/** The tables that a service's migrations must create; `missingTables` of the testing library compares them. */
export const WORK_TABLES_SQL: string = readFileSync(new URL("../sql/tables.sql", import.meta.url), "utf8");
