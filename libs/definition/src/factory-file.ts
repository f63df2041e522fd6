import { omitUndefined } from "@millwright/json";
import type { CodeForge, FactoryPart } from "./definition.ts";
import { EXECUTION_KEYS, readExecutionBlock, readMcpServers, type ReadBlock } from "./execution-block.ts";
import { readCloudProviders, readIntegrations, readScorerDefaults, readSelfImprovement } from "./factory-sections.ts";
import { Fields, type Placed } from "./fields.ts";
import type { Problems } from "./diagnostics.ts";
import {
  ALIAS,
  ALIAS_MAX,
  CODE_FORGES,
  CREDENTIAL_STRATEGIES,
  FACTORY_NAME_MAX,
  REPOSITORY_NAME,
  REPOSITORY_OWNER,
} from "./rules.ts";
import { parseYaml } from "./yaml-document.ts";

const KEYS = [
  ...[
    "schemaVersion",
    "name",
    "description",
    "alias",
    "credentialStrategy",
    "repositories",
    "secrets",
    "mcpServers",
    "cloudProviders",
    "providers",
    "codeForges",
  ],
  ...["integrations", "agentDefaults", "scorerDefaults", "scoring", "selfImprovement"],
] as const;

export type ReadFactory = { part: FactoryPart; defaults: ReadBlock; scorerRunner?: Placed<string> };

/** Reads factory.yaml; undefined if it is not valid YAML. */
export function readFactoryFile(path: string, text: string, problems: Problems): ReadFactory | undefined {
  const parsed = parseYaml(path, text, problems);
  if (!parsed) return undefined;
  const fields = new Fields(parsed.document, parsed.map, KEYS);
  readSchemaVersion(fields);
  for (const key of ["name", "repositories", "agentDefaults"]) fields.require(key);
  fields.inherit("description", "alias", "credentialStrategy");
  const name = fields.text("name", { max: FACTORY_NAME_MAX });
  const description = fields.text("description");
  const alias = fields.text("alias", {
    max: ALIAS_MAX,
    pattern: ALIAS,
    hint: "consist of letters, digits, spaces, and . _ -",
  });
  const strategy = fields.oneOf("credentialStrategy", CREDENTIAL_STRATEGIES);
  const repositories = readRepositories(fields);
  const forges = fields.texts("codeForges", { oneOf: CODE_FORGES }) as CodeForge[] | undefined;
  const secrets = fields.texts("secrets");
  const mcpServers = readMcpServers(fields);
  const cloudProviders = readCloudProviders(fields);
  const integrations = readIntegrations(fields);
  const defaultsFields = fields.fields("agentDefaults", EXECUTION_KEYS);
  const defaults = defaultsFields ? readExecutionBlock(defaultsFields, { needsModel: true }) : { block: {} };
  const scorer = readScorerDefaults(fields);
  const scoringFields = fields.fields("scoring", ["defaultModel"]);
  const scoringModel = scoringFields?.text("defaultModel");
  const selfImprovement = readSelfImprovement(fields);
  return {
    part: {
      name: name ?? "",
      ...omitUndefined({ description, alias }),
      credential_strategy: strategy ?? "EXECUTOR",
      repositories,
      ...omitUndefined({ code_forges: forges }),
      secrets: secrets ?? [],
      mcp_servers: mcpServers ?? {},
      ...omitUndefined({ cloud_providers: cloudProviders, integrations }),
      agent_defaults: defaults.block,
      ...omitUndefined({
        scorer_defaults: scorer?.value,
        scoring: scoringFields && omitUndefined({ default_model: scoringModel }),
        self_improvement: selfImprovement,
      }),
    },
    defaults,
    scorerRunner: scorer?.runner,
  };
}

function readSchemaVersion(fields: Fields): void {
  fields.require("schemaVersion");
  const version = fields.text("schemaVersion");
  if (version !== undefined && version !== "v1alpha1") {
    fields.error(fields.valueAt("schemaVersion"), "FF_UNSUPPORTED_VERSION", "The only schema version is v1alpha1.");
  }
}

function readRepositories(fields: Fields): FactoryPart["repositories"] {
  const seen = new Set<string>();
  return (fields.list("repositories", ["owner", "name", "codeForge"]) ?? []).flatMap((entry) => {
    for (const key of ["owner", "name"]) entry.require(key);
    const owner = entry.text("owner", {
      pattern: REPOSITORY_OWNER,
      hint: "be an owner, or a namespace such as group/subgroup",
    });
    const repo = entry.text("name", {
      pattern: REPOSITORY_NAME,
      hint: "be the name of a repository, without its owner",
    });
    const forge: CodeForge | undefined = entry.oneOf("codeForge", CODE_FORGES);
    if (owner === undefined || repo === undefined) return [];
    const pair = `${owner}/${repo}`.toLowerCase(); // code hosts ignore case
    if (seen.has(pair)) entry.error(entry.at, "FF_DUPLICATE_NAME", `The repository ${owner}/${repo} is listed twice.`);
    seen.add(pair);
    return [{ owner, repo, ...omitUndefined({ code_forge: forge }) }];
  });
}
