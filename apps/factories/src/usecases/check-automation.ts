import type { Caller } from "@millwright/caller";
import { SCHEMA_VERSION, type AutomationPart, type Definition } from "@millwright/definition";
import type { AutomationFault } from "../domain/automation.ts";
import type { Factory } from "../domain/factory.ts";
import type { Owners } from "./source-deps.ts";

/**
 * Returns the resources that an automation references and that the factory or its team does not have: an agent, a
 * runner, a model, an environment, a secret. The owners validate the automation as they validate files, so both are
 * rejected for the same reasons.
 * Errors: unavailable, if an owner is unavailable.
 */
export async function missingReferences(
  { owners }: { owners: Owners },
  caller: Caller,
  factory: Factory,
  automation: AutomationPart,
): Promise<AutomationFault[]> {
  const path = `automations/${automation.name}/automation.md`;
  const { diagnostics } = await owners.stage(caller, {
    factory,
    definition: only(automation),
    version: factory.currentVersion + 1,
    isDryRun: true,
  });
  return diagnostics
    .filter((diagnostic) => diagnostic.severity === "error" && diagnostic.path === path)
    .map(({ code, message }) => ({ code, message }));
}

/** Returns a definition that contains only an automation. */
const only = (automation: AutomationPart): Definition => ({
  schema_version: SCHEMA_VERSION,
  factory: {
    name: "",
    credential_strategy: "EXECUTOR",
    repositories: [],
    secrets: [],
    mcp_servers: {},
    agent_defaults: {},
  },
  agents: [],
  runners: [],
  automations: [automation],
  webhooks: [],
  scorers: [],
  benchmarks: [],
  skills: [],
});
