import type { Database } from "@millwright/database";

export const costAnswerStore = (_database: Database) => ({});
