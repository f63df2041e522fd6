import { rolesFault } from "@millwright/definition";
import type { DomainError } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import { SUITE_LIMITS, suiteInvalid } from "./suite-rules.ts";
import type { AgentOverride, Configuration } from "./suite.ts";

/** A configuration as given by the caller. `uid` identifies an existing configuration. */
export type GivenConfiguration = Omit<Configuration, "uid" | "id" | "role"> & {
  readonly uid?: string;
  readonly role: string;
};

/**
 * Checks configurations and assigns uids and numbers. An entry that identifies an existing configuration retains both.
 * `fail` builds the error from a field and a text. Errors: those of `fail`.
 */
export function checkConfigurations(
  given: readonly GivenConfiguration[],
  existing: readonly Configuration[],
  newConfigurationUid: () => string,
  fail: (field: string, message: string) => DomainError = suiteInvalid,
): Configuration[] {
  const refuse = (message: string): never => {
    throw fail("configurations", message);
  };
  if (given.length > SUITE_LIMITS.configurations)
    refuse(`configurations must have at most ${SUITE_LIMITS.configurations} entries (got ${given.length}).`);
  const fault = rolesFault(given.map(({ role }) => role));
  if (fault !== undefined) refuse(fault);
  let lastId = Math.max(0, ...existing.map(({ id }) => id));
  const seen = new Set<string>();
  return given.map((entry): Configuration => {
    const { uid, role } = entry;
    const known = uid === undefined ? undefined : existing.find((candidate) => candidate.uid === uid.toLowerCase());
    if (uid !== undefined && !known)
      refuse(`The suite has no configuration ${JSON.stringify(uid)}; leave uid out for a new one.`);
    if (known && seen.has(known.uid)) refuse(`The configuration ${known.uid} is given twice.`);
    if (known) seen.add(known.uid);
    if (role !== "baseline" && role !== "candidate")
      return refuse(`role must be baseline or candidate (got ${JSON.stringify(role)}).`);
    if (entry.agent_configs.length > SUITE_LIMITS.overrides)
      refuse(`agent_configs must have at most ${SUITE_LIMITS.overrides} entries (got ${entry.agent_configs.length}).`);
    const agentConfigs = entry.agent_configs.map((override): AgentOverride => {
      if (!isUuid(override.agent_uid))
        refuse(`agent_uid in agent_configs must be a UUID (got ${JSON.stringify(override.agent_uid)}).`);
      return { ...override, agent_uid: override.agent_uid.toLowerCase() };
    });
    const agents = agentConfigs.map(({ agent_uid: agentUid }) => agentUid);
    if (new Set(agents).size !== agents.length) refuse("agent_configs must name each agent once.");
    const texts = [
      entry.display_name,
      entry.harness,
      entry.model,
      entry.runner_uid,
      entry.harness_auth_secret_name ?? "",
    ];
    const long = [
      ...texts,
      ...agentConfigs.flatMap((override) => [override.harness, override.model, override.agent_name]),
    ].find((text) => text.length > SUITE_LIMITS.field);
    if (long !== undefined)
      refuse(`Texts of configurations must have at most ${SUITE_LIMITS.field} characters (got ${long.length}).`);
    return {
      uid: known?.uid ?? newConfigurationUid(),
      id: known?.id ?? ++lastId,
      role,
      display_name: entry.display_name.trim(),
      harness: entry.harness.trim(),
      model: entry.model.trim(),
      runner_uid: entry.runner_uid.trim(),
      harness_auth_secret_name: entry.harness_auth_secret_name || null,
      agent_configs: agentConfigs,
    };
  });
}
