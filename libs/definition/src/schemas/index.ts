import { AUTOMATION } from "./automation.ts";
import { COMMON } from "./common.ts";
import { FACTORY } from "./factory.ts";
import type { JsonSchema } from "./json-schema.ts";
import { SCORER, SUITE, SUITE_TASK } from "./judging.ts";
import { WEBHOOK } from "./webhook.ts";
import { AGENT, RUNNER } from "./workers.ts";

/** The current and only version of the format. */
export const SCHEMA_VERSION = "v1alpha1";

const DOCUMENTS = [COMMON, FACTORY, AGENT, AUTOMATION, RUNNER, SCORER, WEBHOOK, SUITE, SUITE_TASK];

/**
 * The JSON Schema 2020-12 documents of the format by their `$id`, which is the file name. They are generated from the
 * parser's tables; only the parser checks rules across files and between values.
 */
export const SCHEMA_DOCUMENTS: Readonly<Record<string, JsonSchema>> = Object.fromEntries(
  DOCUMENTS.map((schema) => [(schema as { $id: string }).$id, schema]),
);
