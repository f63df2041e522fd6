import { chooseTeam, requireVerb, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { DomainError, invalidArgument } from "@millwright/errors";
import { appendEvents } from "@millwright/events";
import { newUid } from "@millwright/ids";
import {
  assertEditable,
  BLANK,
  withFields,
  withSecrets,
  type Agent,
  type AgentFields,
  type AgentParts,
} from "../domain/agent-identity.ts";
import { causedBy, facts, type Cause } from "../events/facts.ts";
import { deleteAgentRow, getAgent, saveAgent } from "../store/agent-store.ts";
import { lockFactory, stagedForemen } from "../store/definition-store.ts";
import type { Tx } from "../store/identity-db.ts";
import { missingSecrets } from "../store/secret-store.ts";
import { forgetKeys } from "./revoke-key.ts";

type Deps = { tx: Tx; clock: Clock };

/**
 * Creates an agent in the caller's active team. The caller must have checked that `factoryUid` is a factory of that
 * team.
 *
 * Errors: not_authorized (only people manage agents) · team_required · team_not_found · invalid_agent · secret_unknown
 *   · agent_name_taken, foreman_exists (within a factory, including its staged definitions).
 */
export async function createAgent(
  deps: Deps,
  caller: Caller,
  input: { factoryUid?: string | undefined; fields: AgentFields },
): Promise<Agent> {
  const teamUid = chooseTeam(caller);
  assertMayManage(caller, teamUid);
  const now = deps.clock.now();
  const parts = withFields(BLANK, input.fields);
  if (input.factoryUid) {
    await lockFactory(deps.tx.sql, input.factoryUid);
    await assertNoStagedForeman(deps, { ...parts, factoryUid: input.factoryUid });
  }
  await assertSecretsKnown(deps.tx, teamUid, parts.config.secrets ?? []);
  const agent: Agent = {
    ...parts,
    uid: newUid(),
    teamUid,
    factoryUid: input.factoryUid ?? null,
    enabled: true,
    fileManaged: false,
    version: 1,
    createdAt: now,
    updatedAt: now,
  };
  await saveAgent(deps.tx.sql, agent);
  await appendEvents(deps.tx.sql, [facts.agentCreated(causedBy(caller), factOf(agent))]);
  return agent;
}

/**
 * Updates the fields that were sent; an empty value clears a field.
 *
 * Errors: agent_not_found · not_authorized · invalid_agent · secret_unknown · agent_name_taken, foreman_exists
 *   · agent_file_managed (conflict; clearing the credential strategy: invalid_argument).
 */
export async function updateAgent(
  deps: Deps,
  caller: Caller,
  input: { uid: string; fields: AgentFields },
): Promise<Agent> {
  // The factory is locked before the agent's row, in the same order as in an activation, to avoid deadlocks.
  const { factoryUid } = await getAgent(
    deps.tx.sql,
    caller.teams.map((team) => team.teamUid),
    input.uid,
  );
  if (factoryUid) await lockFactory(deps.tx.sql, factoryUid);
  const before = await editableAgent(deps, caller, input, (agent) => {
    if (agent.fileManaged && input.fields.credential_strategy === "")
      throw invalidArgument(
        "agent_file_managed",
        "The factory's files define this agent: credential_strategy cannot be cleared here. Change the files.",
      );
  });
  const parts = withFields(before, input.fields);
  if (factoryUid && !before.fileManaged) await assertNoStagedForeman(deps, { ...parts, factoryUid });
  return save(deps, caller, before, parts, input.fields.secrets ?? []);
}

/** Adds secrets and changes nothing else. An unknown name rejects all. Errors: those of updateAgent. */
export async function appendSecrets(
  deps: Deps,
  caller: Caller,
  input: { uid: string; names: readonly string[] },
): Promise<Agent> {
  const before = await editableAgent(deps, caller, {
    uid: input.uid,
    fields: { secrets: input.names.map((name) => ({ name })) },
  });
  return save(
    deps,
    caller,
    before,
    { config: withSecrets(before.config, input.names) },
    input.names.map((name) => ({ name })),
  );
}

/**
 * Deletes an agent and, in the same transaction, all its keys.
 *
 * Errors: agent_not_found · not_authorized · agent_file_managed (invalid_argument): the agent is deleted by deleting
 * its file.
 */
export async function deleteAgent(deps: Deps, caller: Caller, uid: string): Promise<void> {
  const agent = await getAgent(
    deps.tx.sql,
    caller.teams.map((team) => team.teamUid),
    uid,
    "FOR UPDATE",
  );
  assertMayManage(caller, agent.teamUid);
  if (agent.fileManaged)
    throw invalidArgument("agent_file_managed", "The factory's files define this agent. Delete its file instead.");
  await eraseAgent(deps.tx, causedBy(caller), agent);
}

/** Deletes an agent with its keys, and publishes the events of both. */
export async function eraseAgent({ sql }: Pick<Tx, "sql">, by: Cause, agent: Agent): Promise<void> {
  const keyUids = await deleteAgentRow(sql, agent.uid);
  await forgetKeys(
    { sql },
    by,
    keyUids.map((uid) => ({ uid, teamUid: agent.teamUid })),
  );
  await appendEvents(sql, [facts.agentDeleted(by, factOf({ ...agent, version: agent.version + 1 }))]);
}

/** Returns the members of an agent's events. */
export const factOf = (agent: Agent) => ({
  uid: agent.uid,
  version: agent.version,
  teamUid: agent.teamUid,
  payload: {
    name: agent.name,
    agent_type: agent.agentType,
    ...(agent.factoryUid ? { factory_uid: agent.factoryUid } : {}),
    ...{
      concurrency_limit: agent.concurrencyLimit,
      queue_priority: agent.queuePriority,
      queue_paused: agent.queuePaused,
    },
  },
});

async function editableAgent(
  deps: Deps,
  caller: Caller,
  { uid, fields }: { uid: string; fields: AgentFields },
  check: (agent: Agent) => void = () => {},
): Promise<Agent> {
  const agent = await getAgent(
    deps.tx.sql,
    caller.teams.map((team) => team.teamUid),
    uid,
    "FOR UPDATE",
  );
  assertMayManage(caller, agent.teamUid);
  check(agent);
  assertEditable(agent, fields);
  return agent;
}

async function save(
  deps: Deps,
  caller: Caller,
  before: Agent,
  changes: Partial<Agent>,
  named: readonly { name: string }[],
): Promise<Agent> {
  await assertSecretsKnown(deps.tx, before.teamUid, named);
  const agent = { ...before, ...changes, version: before.version + 1, updatedAt: deps.clock.now() };
  await saveAgent(deps.tx.sql, agent);
  await appendEvents(deps.tx.sql, [facts.agentUpdated(causedBy(caller), factOf(agent))]);
  return agent;
}

function assertMayManage(caller: Caller, teamUid: string): void {
  requireVerb(caller, teamUid, "agent.manage", "agent");
  if (caller.principal.type !== "user" || caller.run)
    throw new DomainError({
      kind: "permission_denied",
      reason: "not_authorized",
      message: "Managing agents requires the key of a user; keys of agents and run tokens are not accepted.",
    });
}

/**
 * Throws `foreman_exists` if a staged definition has another foreman: a foreman created through the API after staging
 * would make the activation fail. The factory's definition must be locked.
 */
async function assertNoStagedForeman(
  { tx }: Deps,
  { agentType, name, factoryUid }: AgentParts & { factoryUid: string },
): Promise<void> {
  if (agentType !== "FOREMAN") return;
  const staged = (await stagedForemen(tx.sql, factoryUid)).find((each) => each !== name);
  if (staged !== undefined)
    throw invalidArgument(
      "foreman_exists",
      `The definition that is being applied contains the foreman "${staged}"; a factory has one foreman. Change the files.`,
    );
}

async function assertSecretsKnown(tx: Tx, teamUid: string, secrets: readonly { name: string }[]): Promise<void> {
  const missing = await missingSecrets(
    tx,
    teamUid,
    secrets.map(({ name }) => name),
  );
  if (missing.length > 0)
    throw invalidArgument("secret_unknown", `The team has no secret named ${missing.join(", ")}.`);
}
