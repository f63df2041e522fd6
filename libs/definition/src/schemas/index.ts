import { AUTOMATION } from "./automation.ts";
import { COMMON } from "./common.ts";
import { FACTORY } from "./factory.ts";
import type { JsonSchema } from "./json-schema.ts";
import { SCORER, SUITE, SUITE_TASK } from "./judging.ts";
import { WEBHOOK } from "./webhook.ts";
import { AGENT, RUNNER } from "./workers.ts";

/** The only version of the format so far. */
export const SCHEMA_VERSION = "v1alpha1";

const DOCUMENTS = [COMMON, FACTORY, AGENT, AUTOMATION, RUNNER, SCORER, WEBHOOK, SUITE, SUITE_TASK];

/**
 * The JSON Schema 2020-12 documents of the format by their `$id`, which is their file name. They are made of the tables that the
 * parser reads by; rules across files, and those that compare values with each other, are the parser's alone.
 */
export const SCHEMA_DOCUMENTS: Readonly<Record<string, JsonSchema>> = Object.fromEntries(
  DOCUMENTS.map((schema) => [(schema as { $id: string }).$id, schema]),
);
