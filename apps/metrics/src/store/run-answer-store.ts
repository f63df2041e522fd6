import type { Database } from "@millwright/database";

export const runAnswerStore = (_database: Database) => ({});
