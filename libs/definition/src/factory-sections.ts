import { omitUndefined } from "@millwright/json";
import type { CloudProviders, FactoryPart, Integration } from "./definition.ts";
import { readMcpServers } from "./execution-block.ts";
import type { Fields, Placed } from "./fields.ts";

/**
 * `cloudProviders` of factory.yaml; `providers` is its former name, which is validated but ignored if both are present.
 */
export function readCloudProviders(factory: Fields): CloudProviders | undefined {
  const old = readCloudProvidersOf(factory, "providers");
  return readCloudProvidersOf(factory, "cloudProviders") ?? old;
}

function readCloudProvidersOf(factory: Fields, section: string): CloudProviders | undefined {
  const fields = factory.fields(section, ["gcp", "aws"]);
  if (!fields) return undefined;
  const required = [
    "projectNumber",
    "workloadIdentityFederationPoolId",
    "workloadIdentityFederationProviderId",
  ] as const;
  const gcp = fields.fields("gcp", [...required, "serviceAccountEmail"]);
  for (const key of required) gcp?.require(key);
  const [project, pool, provider] = [
    gcp?.text("projectNumber", { pattern: /^\d+$/, hint: "consist of digits" }),
    gcp?.text(required[1]),
    gcp?.text(required[2]),
  ];
  const account = gcp?.text("serviceAccountEmail");
  const aws = fields.fields("aws", ["roleArn"]);
  aws?.require("roleArn");
  const roleArn = aws?.text("roleArn");
  return {
    ...(project !== undefined &&
      pool !== undefined &&
      provider !== undefined && {
        gcp: {
          project_number: project,
          workload_identity_federation_pool_id: pool,
          workload_identity_federation_provider_id: provider,
          ...omitUndefined({ service_account_email: account }),
        },
      }),
    ...omitUndefined({ aws: roleArn === undefined ? undefined : { role_arn: roleArn } }),
  };
}

export const INTEGRATION_TYPES = ["slack", "linear", "jira", "microsoft-teams"] as const;

/**
 * `integrations` of factory.yaml: each type at most once, not both Linear and Jira, settings under the type's name.
 */
export function readIntegrations(factory: Fields): Integration[] | undefined {
  const seen = new Set<string>();
  return factory.list("integrations", ["type", ...INTEGRATION_TYPES])?.flatMap((entry) => {
    entry.require("type");
    const type = entry.oneOf("type", INTEGRATION_TYPES);
    for (const block of INTEGRATION_TYPES) {
      if (type && block !== type && entry.has(block)) {
        entry.error(
          entry.keyAt(block),
          "FF_CONFLICTING_FIELDS",
          `Settings under ${block} do not belong to the type ${type}.`,
        );
      }
    }
    if (!type) return [];
    const rival = { linear: "jira", jira: "linear" }[type as string];
    if (seen.has(type))
      entry.error(entry.valueAt("type"), "FF_DUPLICATE_NAME", `The integration ${type} is listed twice.`);
    else if (rival !== undefined && seen.has(rival))
      entry.error(entry.valueAt("type"), "FF_CONFLICTING_FIELDS", "linear and jira exclude each other.");
    seen.add(type);
    return [{ type, ...readSettings(entry, type) }];
  });
}

function readSettings(entry: Fields, type: Integration["type"]): Omit<Integration, "type"> {
  if (type === "linear") {
    const fields = entry.fields(type, ["teamIds"]);
    const teamIds = fields?.texts("teamIds");
    return fields ? { linear: teamIds ? { team_ids: teamIds } : {} } : {};
  }
  if (type === "jira") {
    const fields = entry.fields(type, ["projectKeys"]);
    const projectKeys = fields?.texts("projectKeys");
    return fields ? { jira: projectKeys ? { project_keys: projectKeys } : {} } : {};
  }
  const fields = entry.fields(type, ["autoRespondToThreadReplies"]);
  const autoRespond = fields?.boolean("autoRespondToThreadReplies");
  return fields ? { [type]: autoRespond === undefined ? {} : { auto_respond_to_thread_replies: autoRespond } } : {};
}

/** `scorerDefaults` of factory.yaml. */
export function readScorerDefaults(
  factory: Fields,
): { value: NonNullable<FactoryPart["scorer_defaults"]>; runner?: Placed<string> } | undefined {
  const fields = factory.fields("scorerDefaults", ["runner", "secrets", "mcpServers"]);
  if (!fields) return undefined;
  const runner = fields.text("runner");
  const secrets = fields.texts("secrets");
  const mcpServers = readMcpServers(fields);
  return {
    value: omitUndefined({ runner, secrets, mcp_servers: mcpServers }),
    runner: runner === undefined ? undefined : { value: runner, at: fields.valueAt("runner") },
  };
}

export const REVIEWER_TYPES = ["none", "admins", "team", "custom"] as const;

/**
 * `selfImprovement` of factory.yaml. Whether the reviewers are members is checked elsewhere, since it is the team's
 * state.
 */
export function readSelfImprovement(factory: Fields): FactoryPart["self_improvement"] {
  const fields = factory.fields("selfImprovement", ["reviewerType", "failedRunThreshold", "reviewerEmails"]);
  if (!fields) return undefined;
  fields.require("reviewerType");
  const reviewerType = fields.oneOf("reviewerType", REVIEWER_TYPES);
  const threshold = fields.integer("failedRunThreshold", { min: 1, max: 50 });
  const emails = fields.texts("reviewerEmails");
  if (reviewerType && reviewerType !== "custom" && fields.has("reviewerEmails")) {
    fields.error(
      fields.keyAt("reviewerEmails"),
      "FF_CONFLICTING_FIELDS",
      "reviewerEmails belongs to the reviewerType custom only.",
    );
  }
  return (
    reviewerType && {
      reviewer_type: reviewerType,
      ...omitUndefined({ failed_run_threshold: threshold, reviewer_emails: emails }),
    }
  );
}
