import { INTEGRATION_TYPES, REVIEWER_TYPES } from "../factory-sections.ts";
import { ALIAS, ALIAS_MAX, CODE_FORGES, FACTORY_NAME_MAX, REPOSITORY_NAME, REPOSITORY_OWNER } from "../rules.ts";
import {
  BOOLEAN,
  closed,
  common,
  document,
  enumOf,
  executing,
  TEXT,
  TEXT_OR_NULL,
  TEXTS,
  type JsonSchema,
} from "./json-schema.ts";

const GCP = ["projectNumber", "workloadIdentityFederationPoolId", "workloadIdentityFederationProviderId"];
const threads = closed({ autoRespondToThreadReplies: BOOLEAN });
const SETTINGS: Readonly<Record<(typeof INTEGRATION_TYPES)[number], JsonSchema>> = {
  slack: threads,
  "microsoft-teams": threads,
  linear: closed({ teamIds: TEXTS }),
  jira: closed({ projectKeys: TEXTS }),
};

const cloudProviders = closed({
  gcp: closed(
    {
      projectNumber: { type: "string", pattern: "^[0-9]+$" },
      [GCP[1]!]: TEXT,
      [GCP[2]!]: TEXT,
      serviceAccountEmail: TEXT,
    },
    { required: GCP },
  ),
  aws: closed({ roleArn: TEXT }, { required: ["roleArn"] }),
});

const integration = (type: (typeof INTEGRATION_TYPES)[number]): JsonSchema =>
  closed({ type: { const: type }, [type]: SETTINGS[type] }, { required: ["type"] });

/** factory.yaml */
export const FACTORY = document(
  "factory.schema.json",
  "factory.yaml",
  "A factory: its repositories, what its agents share, and how they work by default.",
  closed(
    {
      schemaVersion: { const: "v1alpha1" },
      name: { ...(TEXT as object), maxLength: FACTORY_NAME_MAX },
      description: TEXT_OR_NULL,
      alias: { ...(TEXT_OR_NULL as object), allOf: [{ pattern: ALIAS.source }], maxLength: ALIAS_MAX },
      credentialStrategy: common("credentialStrategy"),
      repositories: {
        type: "array",
        items: closed(
          {
            owner: { type: "string", pattern: REPOSITORY_OWNER.source },
            name: { type: "string", pattern: REPOSITORY_NAME.source },
            codeForge: enumOf(CODE_FORGES),
          },
          { required: ["owner", "name"] },
        ),
      },
      secrets: { ...(TEXTS as object), description: "Managed secrets that every agent is granted." },
      mcpServers: common("mcpServers"),
      codeForges: {
        type: "array",
        items: enumOf(CODE_FORGES),
        description: "Absent or empty: those of its repositories.",
      },
      cloudProviders,
      providers: {
        ...(cloudProviders as object),
        description: "The old name of cloudProviders, beside which it does not count.",
      },
      integrations: { type: "array", items: { oneOf: INTEGRATION_TYPES.map(integration) } },
      agentDefaults: executing({}, { more: { anyOf: [{ required: ["model"] }, { required: ["harness"] }] } }),
      scorerDefaults: closed({ runner: TEXT, secrets: TEXTS, mcpServers: common("mcpServers") }),
      scoring: closed({ defaultModel: TEXT }),
      selfImprovement: closed(
        {
          reviewerType: enumOf(REVIEWER_TYPES),
          failedRunThreshold: { type: "integer", minimum: 1, maximum: 50 },
          reviewerEmails: TEXTS,
        },
        {
          required: ["reviewerType"],
          more: {
            if: { properties: { reviewerType: { const: "custom" } }, required: ["reviewerType"] },
            else: { properties: { reviewerEmails: false } },
          },
        },
      ),
    },
    { required: ["schemaVersion", "name", "repositories", "agentDefaults"] },
  ),
);
