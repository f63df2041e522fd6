import type { Database } from "@millwright/database";

export const pullRequestAnswerStore = (_database: Database) => ({});
