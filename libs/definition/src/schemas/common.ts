import { FILTER_LIMITS } from "@millwright/payload-filter";
import { HARNESS_TYPES, REFERENCE_KEYS } from "../execution-block.ts";
import { CREDENTIAL_STRATEGIES } from "../rules.ts";
import { BOOLEAN, closed, document, enumOf, TEXT, TEXT_OR_NULL, TEXTS, type JsonSchema } from "./json-schema.ts";

const here = (name: string): JsonSchema => ({ $ref: `#/$defs/${name}` });
const OPERATORS = ["in", "not_in", "exists"];
const SET: JsonSchema = {
  type: "array",
  items: { type: ["string", "number", "boolean", "null"] },
  maxItems: FILTER_LIMITS.values,
};

/** Parts that several documents share. */
export const COMMON = document("common.schema.json", "Common parts", "Parts that the other documents refer to.", {
  $defs: {
    credentialStrategy: enumOf([...CREDENTIAL_STRATEGIES, null]),
    mcpServers: {
      description: "Names of tool servers, each with the reference of a managed server.",
      type: "object",
      additionalProperties: closed(Object.fromEntries(REFERENCE_KEYS.map((key) => [key, TEXT])), {
        more: { minProperties: 1, maxProperties: 1 },
      }),
    },
    auth: {
      oneOf: [
        { type: "null" },
        closed({ source: { const: "managedSecret" }, secretName: TEXT }, { required: ["source", "secretName"] }),
        closed({ source: { const: "workerEnvironment" } }, { required: ["source"] }),
      ],
    },
    harness: closed(
      { type: enumOf(HARNESS_TYPES), model: TEXT_OR_NULL, reasoningLevel: TEXT_OR_NULL, auth: here("auth") },
      {
        required: ["type"],
        more: {
          if: { properties: { type: { const: "oz" } }, required: ["type"] },
          then: { properties: { auth: { type: "null" }, reasoningLevel: { type: "null" } } },
        },
      },
    ),
    executionBlock: {
      description: "How work is carried out. model is short for the built-in harness with that model.",
      type: "object",
      properties: {
        model: TEXT_OR_NULL,
        harness: here("harness"),
        runner: TEXT_OR_NULL,
        environmentId: TEXT_OR_NULL,
        secrets: TEXTS,
        mcpServers: here("mcpServers"),
        workerHost: {
          type: ["string", "null"],
          pattern: "^$|\\S",
          description: "A self-hosted worker's id; warp, service, null or nothing: hosted by the service.",
        },
      },
      not: { required: ["model", "harness"] },
    },
    values: {
      description: "Values of which one must match, or lists of those that must and that must not.",
      oneOf: [{ type: "null" }, TEXTS, closed({ in: TEXTS, not_in: TEXTS })],
    },
    payloadFilter: {
      description: "Which payloads match: for each field allowed values, operators, or a filter of the nested object.",
      type: "object",
      propertyNames: { not: enumOf(OPERATORS) },
      additionalProperties: here("payloadNode"),
    },
    payloadNode: {
      oneOf: [
        SET,
        closed({ in: SET, not_in: SET, exists: BOOLEAN }, { more: { minProperties: 1 } }),
        here("payloadFilter"),
      ],
    },
  },
});
