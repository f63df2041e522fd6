import type { JsonObject } from "@bufbuild/protobuf";
import type { Clock } from "@millwright/clock";
import { invalidArgument } from "@millwright/errors";
import type { Agent } from "../domain/agent-identity.ts";
import { planOf, readDefinitionPart, type DefinitionPart, type PlanItem } from "../domain/definition-part.ts";
import { factoryAgents } from "../store/agent-store.ts";
import { dropStages, findLayer, lockFactory, saveStage } from "../store/definition-store.ts";
import type { IdentityDb, Tx } from "../store/identity-db.ts";
import { missingSecrets } from "../store/secret-store.ts";
import { getProfiles } from "./get-profiles.ts";

/** A problem in a definition file. `keys` is the path to the value in the file. */
export type Diagnostic = { path: string; keys: string[]; code: string; message: string; severity: "error" | "warning" };
export type StageRequest = {
  factoryUid: string;
  teamUid: string;
  version: number;
  definition: JsonObject;
  dryRun: boolean;
};

/**
 * Checks the agents and layers of a definition against this service's state, and stores them without effect on the
 * active version. Stores nothing if there are errors, or for a dry run. Idempotent per version.
 *
 * Errors: definition_malformed · factory_team_mismatch.
 */
export async function stageDefinition(
  deps: { db: IdentityDb; clock: Clock },
  request: StageRequest,
): Promise<{ diagnostics: Diagnostic[]; plan: PlanItem[] }> {
  const part = readDefinitionPart(request.definition);
  return deps.db.transaction(async (tx) => {
    await lockFactory(tx.sql, request.factoryUid);
    const layer = await findLayer(tx.sql, request.factoryUid);
    if (layer && layer.teamUid !== request.teamUid)
      throw invalidArgument(
        "factory_team_mismatch",
        "factory_uid must be a factory of the given team; this factory belongs to another team.",
      );
    const agents = await factoryAgents(tx.sql, request.teamUid, request.factoryUid);
    const diagnostics = [
      ...secondForeman(part, agents),
      ...unknownAgents(part, agents),
      ...(await unknownSecrets(tx, request.teamUid, part)),
      ...(await unknownReviewers(tx, request.teamUid, part)),
    ];
    if (diagnostics.length === 0 && !request.dryRun) await saveStage(tx.sql, { ...request, part }, deps.clock.now());
    return { diagnostics, plan: planOf(part, { agents, layer: layer?.config }) };
  });
}

/** Deletes a stage that will not be activated. An absent stage is not an error. */
export async function discardDefinition(
  deps: { db: IdentityDb },
  input: { factoryUid: string; version: number },
): Promise<void> {
  await dropStages(deps.db.now.sql, input.factoryUid, { only: input.version });
}

/**
 * Returns an error if the definition has a foreman while people created another one: a factory has one foreman, so the
 * activation would fail.
 */
function secondForeman({ agents: defined }: DefinitionPart, agents: readonly Agent[]): Diagnostic[] {
  const next = defined.find(({ agentType }) => agentType === "FOREMAN");
  const manualForeman = agents.find(
    ({ agentType, fileManaged, name }) =>
      agentType === "FOREMAN" && !fileManaged && defined.every((each) => each.name !== name),
  );
  if (!next || !manualForeman) return [];
  const message = `The factory has a foreman that no file defines, "${manualForeman.name}": delete that agent or give it another type.`;
  return [
    { path: `agents/${next.name}/agent.md`, keys: ["agentType"], code: "FF_FOREMAN_COUNT", message, severity: "error" },
  ];
}

/**
 * Returns an error for each automation whose agent is neither in the definition nor in the factory. For definitions
 * from files, the parser has checked this.
 */
function unknownAgents({ agents: defined, agentNames }: DefinitionPart, agents: readonly Agent[]): Diagnostic[] {
  const known = new Set([...defined, ...agents].map(({ name }) => name));
  return agentNames
    .filter(({ name }) => !known.has(name))
    .map(({ path, keys, name }) => ({
      path,
      keys,
      code: "FF_INVALID_REFERENCE",
      message: `The factory has no agent named "${name}".`,
      severity: "error",
    }));
}

async function unknownSecrets(tx: Tx, teamUid: string, { secretNames }: DefinitionPart): Promise<Diagnostic[]> {
  const missing = new Set(
    await missingSecrets(
      tx,
      teamUid,
      secretNames.map(({ name }) => name),
    ),
  );
  return secretNames
    .filter(({ name }) => missing.has(name))
    .map(({ path, keys, name }) => ({
      path,
      keys,
      code: "FF_INVALID_REFERENCE",
      message: `The team has no managed secret named "${name}".`,
      severity: "error",
    }));
}

async function unknownReviewers(tx: Tx, teamUid: string, { reviewerEmails }: DefinitionPart): Promise<Diagnostic[]> {
  if (reviewerEmails.length === 0) return [];
  const members = await getProfiles(tx, {
    uids: [],
    emails: reviewerEmails.map(({ email }) => email),
    teamUids: [teamUid],
  });
  const known = new Set(members.map(({ email }) => email));
  return reviewerEmails
    .filter(({ email }) => !known.has(email.toLowerCase()))
    .map(({ path, keys, email }) => ({
      path,
      keys,
      code: "FF_INVALID_REFERENCE",
      message: `The team has no member with the e-mail address "${email}".`,
      severity: "error",
    }));
}
