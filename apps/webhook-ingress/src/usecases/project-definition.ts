import type { Clock } from "@millwright/clock";
import type { Database, Sql } from "@millwright/database";
import { WEBHOOKS_MAX } from "@millwright/definition";
import { DomainError, isDomainError } from "@millwright/errors";
import { appendEvents, type NewEvent } from "@millwright/events";
import { as, newUid, type FactoryUid, type TeamUid } from "@millwright/ids";
import { readDefinedWebhooks, selectedWebhooks, type DefinedWebhook } from "../domain/defined-webhook.ts";
import { checkSecret } from "../domain/secret.ts";
import type { Webhook, WebhookUid } from "../domain/webhook.ts";
import { webhookFact, type Origin } from "../events/webhook-events.ts";
import {
  absentWebhooks,
  closeStage,
  countLive,
  deleteDefined,
  dropStage,
  fileWebhooks,
  openStage,
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

/** `keys`: what leads to the value in the file. */
export type Diagnostic = { path: string; keys: string[]; code: string; message: string; severity: "error" | "warning" };
export type StageRequest = {
  factoryUid: string;
  teamUid: string;
  version: number;
  definition: Readonly<Record<string, unknown>>;
  isDryRun: boolean;
};

/**
 * Checks the webhooks of a definition: their managed secrets exist and can be such secrets, and there are not too many beside
 * those that no file defines. Stores them inert, unless something is wrong or only a check is wanted. Repeating it converges.
 *
 * Errors: definition_malformed.
 */
export async function stageDefinition(
  { database, teamSecrets, clock }: ProjectDefinitionDeps,
  request: StageRequest,
): Promise<Diagnostic[]> {
  const { factoryUid, teamUid, version } = request;
  const webhooks = readDefinedWebhooks(request.definition);
  const diagnostics: Diagnostic[] = [];
  for (const webhook of webhooks) {
    const fault = await secretFault(teamSecrets, teamUid, webhook, request.isDryRun);
    if (fault) diagnostics.push(at(`webhooks/${webhook.name}.yaml`, ["secretName"], fault.code, fault.message));
  }
  const others = webhooks.length === 0 ? 0 : await countLive(database.sql, factoryUid);
  if (webhooks.length + others > WEBHOOKS_MAX) {
    diagnostics.push(
      at(
        "factory.yaml",
        [],
        "FF_LIMIT_EXCEEDED",
        `A factory has at most ${WEBHOOKS_MAX} webhooks; files define ${webhooks.length}, and it has ${others} others.`,
      ),
    );
  }
  const unknown = await unknownWebhooks(database.sql, request, new Set(webhooks.map(({ name }) => name)));
  diagnostics.push(...unknown.filter(({ severity }) => severity === "error"));
  if (diagnostics.length === 0 && !request.isDryRun)
    await saveStage(database.sql, { factoryUid, teamUid, version, webhooks }, clock.now());
  return [...diagnostics, ...unknown.filter(({ severity }) => severity === "warning")];
}

/** Triggers of automations that select webhooks which the factory does not have, or not any more: they stay inert. The name of a webhook's file is no uid (spec §2 "Webhook"). */
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
      const here = (message: string) =>
        at(`automations/${automation}/automation.md`, keys, "FF_INVALID_REFERENCE", message);
      return names.has(uid)
        ? here(`webhook_ids takes the uid of a webhook; ${uid} is the name of a file.`)
        : {
            ...here(`With this definition the factory has no webhook ${uid}; the trigger stays inert.`),
            severity: "warning",
          };
    });
}

async function secretFault(
  teamSecrets: TeamSecrets,
  teamUid: string,
  webhook: DefinedWebhook,
  isDryRun: boolean,
): Promise<{ code: string; message: string } | undefined> {
  const secret = { teamUid, name: webhook.secretName };
  try {
    checkSecret(webhook, isDryRun ? await teamSecrets.peek(secret) : await teamSecrets.follow(secret));
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

/** Forgets a stage that will never be activated. An absent one is fine. */
export const dropDefinition = (
  { database }: Pick<ProjectDefinitionDeps, "database">,
  factoryUid: string,
  version: number,
): Promise<void> => dropStage(database.sql, factoryUid, version);

/**
 * Rolls a factory's file webhooks forward to a staged version, in the caller's transaction; an older one changes nothing. A
 * webhook keeps its uid while its file is there, and its switch while its file says the same; without its file it is
 * deleted. Answers the version that serves.
 *
 * Errors: stage_missing (conflict, retryable): the version was never staged here.
 */
export async function activateDefinition(
  tx: Sql,
  { clock }: Pick<ProjectDefinitionDeps, "clock">,
  origin: Origin,
  { factoryUid, version }: { factoryUid: string; version: number },
): Promise<number> {
  const { serving, stage } = await openStage(tx, factoryUid, version);
  if (serving >= version) return serving;
  if (!stage)
    throw new DomainError({
      kind: "conflict",
      reason: "stage_missing",
      message: "This version of the definition was not staged.",
      retryable: true,
    });
  const now = clock.now();
  const before = new Map((await fileWebhooks(tx, factoryUid)).map((one) => [one.webhook.name, one]));
  const facts: NewEvent[] = [];
  for (const { webhook } of before.values()) {
    if (stage.webhooks.some(({ name }) => name === webhook.name)) continue;
    const deleted = { ...webhook, version: webhook.version + 1, updatedAt: now };
    await deleteDefined(tx, deleted);
    facts.push(webhookFact("deleted", deleted, origin));
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
    facts.push(webhookFact(known ? "updated" : "created", webhook, origin));
  }
  await appendEvents(tx, facts);
  await closeStage(tx, factoryUid, version);
  return version;
}
