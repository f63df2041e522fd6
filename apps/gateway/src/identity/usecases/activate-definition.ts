import type { Clock } from "@millwright/clock";
import { DomainError } from "@millwright/errors";
import { appendEvents } from "@millwright/events";
import { newUid } from "@millwright/ids";
import type { Sql } from "@millwright/database";
import type { Agent } from "../domain/agent-identity.ts";
import { changedFields, withOwnFields, type DefinedAgent } from "../domain/definition-part.ts";
import { facts, type Cause } from "../events/facts.ts";
import { factoryAgents, saveAgent } from "../store/agent-store.ts";
import {
  deleteFactoryRows,
  dropStages,
  findLayer,
  findStage,
  lockFactory,
  saveLayer,
  type Stage,
} from "../store/definition-store.ts";
import { eraseAgent, factOf } from "./manage-agents.ts";

type Deps = { sql: Sql; clock: Clock };

/**
 * Updates a factory's agents and layer to a staged version, in the caller's transaction. An older version changes
 * nothing. Agents whose file was removed are deleted with their keys. Returns the active version.
 *
 * Errors: stage_missing (conflict, retryable): the version was never staged here.
 */
export async function activateDefinition(
  deps: Deps,
  by: Cause,
  input: { factoryUid: string; version: number },
): Promise<number> {
  const { sql } = deps;
  await lockFactory(sql, input.factoryUid);
  const current = await findLayer(sql, input.factoryUid);
  if (current && current.version >= input.version) return current.version;
  const stage = await findStage(sql, input.factoryUid, input.version);
  if (!stage)
    throw new DomainError({
      kind: "conflict",
      reason: "stage_missing",
      message: "This version of the definition is not staged. Stage it, then activate it.",
      retryable: true,
    });
  await projectAgents(deps, by, stage);
  await saveLayer(sql, { ...stage, config: stage.part.layer }, deps.clock.now());
  await dropStages(sql, input.factoryUid, { upTo: input.version });
  return input.version;
}

/** Deletes all data of a deleted factory: its agents with their keys, its layer, its stages. */
export async function eraseFactory(
  deps: Deps,
  by: Cause,
  input: { factoryUid: string; teamUid: string },
): Promise<void> {
  await lockFactory(deps.sql, input.factoryUid);
  for (const agent of await factoryAgents(deps.sql, input.teamUid, input.factoryUid, "FOR UPDATE"))
    await eraseAgent(deps, by, agent);
  await deleteFactoryRows(deps.sql, input.factoryUid);
}

async function projectAgents(deps: Deps, by: Cause, { factoryUid, teamUid, part }: Stage): Promise<void> {
  const existing = await factoryAgents(deps.sql, teamUid, factoryUid, "FOR UPDATE");
  const definedNames = new Set(part.agents.map(({ name }) => name));
  for (const agent of existing)
    if (agent.fileManaged && !definedNames.has(agent.name)) await eraseAgent(deps, by, agent);
  const before = new Map(existing.map((agent) => [agent.name, agent]));
  // The foreman is projected last: a factory has only one, and the former foreman may get another type in this version.
  for (const defined of part.agents.toSorted(
    (a, b) => Number(a.agentType === "FOREMAN") - Number(b.agentType === "FOREMAN"),
  ))
    await projectAgent(deps, by, { factoryUid, teamUid, defined, before: before.get(defined.name) });
}

type Projection = { factoryUid: string; teamUid: string; defined: DefinedAgent; before: Agent | undefined };

async function projectAgent(
  { sql, clock }: Deps,
  by: Cause,
  { factoryUid, teamUid, defined, before }: Projection,
): Promise<void> {
  const now = clock.now();
  if (!before) {
    const agent: Agent = {
      ...defined,
      uid: newUid(),
      teamUid,
      factoryUid,
      enabled: true,
      fileManaged: true,
      concurrencyLimit: 0,
      queuePriority: 0,
      queuePaused: false,
      version: 1,
      createdAt: now,
      updatedAt: now,
    };
    await saveAgent(sql, agent);
    return appendEvents(sql, [facts.agentCreated(by, factOf(agent))]);
  }
  const next = withOwnFields(defined, before.config);
  if (before.fileManaged && changedFields(before, next).length === 0) return;
  const agent: Agent = { ...before, ...next, fileManaged: true, version: before.version + 1, updatedAt: now };
  await saveAgent(sql, agent);
  await appendEvents(sql, [facts.agentUpdated(by, factOf(agent))]);
}
