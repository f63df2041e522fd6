import type { Clock } from "@millwright/clock";
import type { Database, Sql } from "@millwright/database";
import { WEBHOOKS_MAX } from "@millwright/definition";
import { DomainError, isDomainError } from "@millwright/errors";
import { appendEvents, type NewEvent } from "@millwright/events";
import { as, newUid, type FactoryUid, type TeamUid } from "@millwright/ids";
import { readDefinedWebhooks, selectedWebhooks, type DefinedWebhook } from "../domain/defined-webhook.ts";
import { checkSecret } from "../domain/secret.ts";
import type { Webhook, WebhookUid } from "../domain/webhook.ts";
import { buildWebhookEvent, type Origin } from "../events/webhook-events.ts";
import {
  absentWebhooks,
  completeStage,
  countLive,
  deleteDefined,
  dropStage,
  fileWebhooks,
  lockStage,
  sameDefinition,
  saveDefined,
  saveStage,
} from "../store/definition-store.ts";
import type { TeamSecrets } from "./team-secrets.ts";

export type ProjectDefinitionDeps = {
  database: Pick<Database, "sql" | "transaction">;
  teamSecrets: TeamSecrets;
  clock: Clock;
};

/** `keys`: the path to the value in the file. */
export type Diagnostic = { path: string; keys: string[]; code: string; message: string; severity: "error" | "warning" };
export type StageRequest = {
  factoryUid: string;
  teamUid: string;
  version: number;
  definition: Readonly<Record<string, unknown>>;
  isDryRun: boolean;
};

/**
 * Validates the webhooks of a definition: their managed secrets exist and are usable, and the factory's webhooks stay
 * within the limit. Stores them as an inactive stage unless there are errors or it is a dry run. Repeating it
 * converges. Errors: definition_malformed.
 */
export async function stageDefinition(
  { database, teamSecrets, clock }: ProjectDefinitionDeps,
  request: StageRequest,
): Promise<Diagnostic[]> {
  const { factoryUid, teamUid, version } = request;
  const webhooks = readDefinedWebhooks(request.definition);
  const diagnostics: Diagnostic[] = [];
  for (const webhook of webhooks) {
    const problem = await secretProblem(teamSecrets, teamUid, webhook, request.isDryRun);
    if (problem) diagnostics.push(at(`webhooks/${webhook.name}.yaml`, ["secretName"], problem.code, problem.message));
  }
  const liveCount = webhooks.length === 0 ? 0 : await countLive(database.sql, factoryUid);
  if (webhooks.length + liveCount > WEBHOOKS_MAX) {
    diagnostics.push(
      at(
        "factory.yaml",
        [],
        "FF_LIMIT_EXCEEDED",
        `A factory can have at most ${WEBHOOKS_MAX} webhooks: files define ${webhooks.length}, and ${liveCount} were created otherwise.`,
      ),
    );
  }
  const unknown = await unknownWebhooks(database.sql, request, new Set(webhooks.map(({ name }) => name)));
  diagnostics.push(...unknown.filter(({ severity }) => severity === "error"));
  if (diagnostics.length === 0 && !request.isDryRun)
    await saveStage(database.sql, { factoryUid, teamUid, version, webhooks }, clock.now());
  return [...diagnostics, ...unknown.filter(({ severity }) => severity === "warning")];
}

/**
 * Returns diagnostics of triggers that select webhooks which the factory does not have: they are inactive. The name of
 * a webhook's file is not a uid.
 */
async function unknownWebhooks(
  sql: Sql,
  { factoryUid, definition }: StageRequest,
  names: ReadonlySet<string>,
): Promise<Diagnostic[]> {
  const selected = selectedWebhooks(definition);
  const absent =
    selected.length === 0
      ? new Set<string>()
      : await absentWebhooks(
          sql,
          factoryUid,
          selected.map(({ uid }) => uid),
          [...names],
        );
  return selected
    .filter(({ uid }) => absent.has(uid))
    .map(({ automation, keys, uid }): Diagnostic => {
      const diagnostic = (message: string) =>
        at(`automations/${automation}/automation.md`, keys, "FF_INVALID_REFERENCE", message);
      return names.has(uid)
        ? diagnostic(`webhook_ids must contain uids of webhooks; ${uid} is the name of a file.`)
        : {
            ...diagnostic(`The factory has no webhook ${uid} with this definition; the trigger is inactive.`),
            severity: "warning",
          };
    });
}

async function secretProblem(
  teamSecrets: TeamSecrets,
  teamUid: string,
  webhook: DefinedWebhook,
  isDryRun: boolean,
): Promise<{ code: string; message: string } | undefined> {
  const secret = { teamUid, name: webhook.secretName };
  try {
    checkSecret(webhook, isDryRun ? await teamSecrets.peek(secret) : await teamSecrets.track(secret));
    return undefined;
  } catch (error) {
    if (!isDomainError(error) || error.kind !== "invalid_argument") throw error;
    return {
      code: error.reason === "secret_not_found" ? "FF_INVALID_REFERENCE" : "FF_INVALID_VALUE",
      message: error.message,
    };
  }
}

const at = (path: string, keys: string[], code: string, message: string): Diagnostic => ({
  path,
  keys,
  code,
  message,
  severity: "error",
});

/** Deletes a stage that will not be activated; an absent one is ignored. */
export const discardDefinition = (
  { database }: Pick<ProjectDefinitionDeps, "database">,
  factoryUid: string,
  version: number,
): Promise<void> => dropStage(database.sql, factoryUid, version);

/**
 * Rolls a factory's file webhooks forward to a staged version, in the caller's transaction; an older version changes
 * nothing. A webhook retains its uid while its file exists, and `enabled` while its file is unchanged; without its file
 * it is deleted. Returns the active version.
 *
 * Errors: stage_missing (conflict, retryable): the version was never staged here.
 */
export async function activateDefinition(
  tx: Sql,
  { clock }: Pick<ProjectDefinitionDeps, "clock">,
  origin: Origin,
  { factoryUid, version }: { factoryUid: string; version: number },
): Promise<number> {
  const { activeVersion, stage } = await lockStage(tx, factoryUid, version);
  if (activeVersion >= version) return activeVersion;
  if (!stage)
    throw new DomainError({
      kind: "conflict",
      reason: "stage_missing",
      message: "This version of the definition is not staged. Stage it, then activate it.",
      retryable: true,
    });
  const now = clock.now();
  const before = new Map((await fileWebhooks(tx, factoryUid)).map((known) => [known.webhook.name, known]));
  const events: NewEvent[] = [];
  for (const { webhook } of before.values()) {
    if (stage.webhooks.some(({ name }) => name === webhook.name)) continue;
    const deleted = { ...webhook, version: webhook.version + 1, updatedAt: now };
    await deleteDefined(tx, deleted);
    events.push(buildWebhookEvent("deleted", deleted, origin));
  }
  for (const defined of stage.webhooks) {
    const known = before.get(defined.name);
    if (known && sameDefinition(known.defined, defined)) continue;
    const webhook: Webhook = known
      ? { ...known.webhook, ...defined, version: known.webhook.version + 1, updatedAt: now }
      : {
          ...defined,
          uid: newUid<WebhookUid>(),
          teamUid: as<TeamUid>(stage.teamUid),
          factoryUid: as<FactoryUid>(factoryUid),
          signatureHeader: undefined,
          signaturePrefix: undefined,
          isSecretSet: true,
          management: "files",
          version: 1,
          createdAt: now,
          updatedAt: now,
          lastDeliveryAt: undefined,
        };
    await saveDefined(tx, webhook, defined, !known);
    events.push(buildWebhookEvent(known ? "updated" : "created", webhook, origin));
  }
  await appendEvents(tx, events);
  await completeStage(tx, factoryUid, version);
  return version;
}
