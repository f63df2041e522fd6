import type { AutomationPart } from "@millwright/definition";
import type { Database, Sql } from "@millwright/database";
import { notFound } from "@millwright/errors";
import { appendEvents, type NewEvent } from "@millwright/events";
import { as, type FactoryUid, type TeamUid } from "@millwright/ids";
import {
  AUTOMATIONS_PER_FACTORY_MAX,
  type Automation,
  type AutomationRules,
  type AutomationUid,
  type ProjectedChange,
} from "../domain/automation.ts";
import type { IdempotentRequest } from "@millwright/idempotency";
import { responses } from "./idempotency.ts";

/** The stored response to an idempotent request. */
type Created = { readonly uid: AutomationUid; readonly created_at: string };

/** Returns the queries of automations. Deleted automations are hidden from every method. */
export function automationStore(database: Database) {
  const { sql } = database;
  return {
    async find(factoryUid: FactoryUid, uid: string): Promise<Automation | undefined> {
      return (await select(sql, "factory_uid = $1::uuid AND uid = $2::uuid", [factoryUid, uid]))[0];
    },

    /** Lists automations after a position, oldest first. */
    list: (
      factoryUid: FactoryUid,
      after: { at: Date; uid: string } | undefined,
      limit: number,
    ): Promise<Automation[]> =>
      select(
        sql,
        "factory_uid = $1::uuid AND ($2::timestamptz IS NULL OR (created_at, uid) > ($2, $3::uuid))",
        [factoryUid, after?.at ?? null, after?.uid ?? null],
        `LIMIT ${limit}`,
      ),

    /** Lists automations of a factory with a trigger of the provider. */
    listByProvider: (factoryUid: string, provider: string): Promise<Automation[]> =>
      select(sql, "factory_uid = $1::uuid AND $2 = ANY (providers)", [factoryUid, provider]),

    countLive: async (factoryUid: FactoryUid): Promise<number> => count(sql, factoryUid, "AND management = 'live'"),

    /**
     * Inserts an automation with its event. Returns undefined if the factory has too many. A repeated request returns
     * the automation as it was created. Errors: idempotency_mismatch.
     */
    create: (
      automation: Automation,
      event: NewEvent,
      request: IdempotentRequest | undefined,
    ): Promise<Automation | undefined> =>
      database
        .transaction(async (tx) => {
          const created = await responses.once<Created>(tx, request, automation.createdAt, async () => {
            await lockSet(tx, automation.factoryUid);
            if ((await count(tx, automation.factoryUid)) >= AUTOMATIONS_PER_FACTORY_MAX) throw new TooMany();
            await insert(tx, automation);
            await appendEvents(tx, [event]);
            return { uid: automation.uid, created_at: automation.createdAt.toISOString() };
          });
          if (created.uid === automation.uid) return automation;
          const createdAt = new Date(created.created_at);
          return { ...automation, uid: created.uid, createdAt, updatedAt: createdAt };
        })
        .catch((error: unknown) => {
          if (error instanceof TooMany) return undefined;
          throw error;
        }),

    /** Locks an automation and stores its change with the event. Errors: automation_not_found. */
    update: (
      factoryUid: FactoryUid,
      uid: string,
      change: (automation: Automation) => { next: Automation; isDeleted?: boolean; event: NewEvent },
    ): Promise<Automation> =>
      database.transaction(async (tx) => {
        const { next, isDeleted, event } = change(await locked(tx, factoryUid, uid));
        await save(tx, next, isDeleted ?? false);
        await appendEvents(tx, [event]);
        return next;
      }),
  };
}

export type AutomationStore = ReturnType<typeof automationStore>;

class TooMany extends Error {}

/** Projects the automations of files, in the transaction of the commit. Returns the changes of `project`. */
export async function applyAutomations(
  tx: Sql,
  factoryUid: FactoryUid,
  project: (before: readonly Automation[]) => readonly ProjectedChange[],
): Promise<readonly ProjectedChange[]> {
  await lockSet(tx, factoryUid);
  const changes = project(await select(tx, "factory_uid = $1::uuid AND management = 'files'", [factoryUid]));
  for (const { happened, automation } of changes) {
    if (happened === "created") await insert(tx, automation);
    else await save(tx, automation, happened === "deleted");
  }
  return changes;
}

/**
 * Changes the automations of a team that no file defines and whose creator is the given member, in the caller's
 * transaction. An automation that was replaced after `since` is skipped, because the caller who replaced it became its
 * creator. One minute is allowed for clock differences.
 */
export async function updateAutomationsOfMember(
  tx: Sql,
  { teamUid, userUid, since }: { teamUid: string; userUid: string; since: Date },
  change: (automation: Automation) => { next: Automation; event: NewEvent },
): Promise<void> {
  const where = `team_uid = $1::uuid AND management = 'live' AND creator_type = 'user' AND creator_uid = $2
    AND updated_at < $3::timestamptz + interval '1 minute' AND NOT (creator_lost_access AND NOT enabled) AND deleted_at IS NULL`;
  const params = [teamUid, userUid, since.toISOString()];
  const { rows } = await tx.query<{ factory_uid: string; uid: string }>(
    `SELECT factory_uid, uid FROM automations WHERE ${where} ORDER BY uid FOR UPDATE`,
    params,
  );
  for (const { factory_uid: factoryUid, uid } of rows) {
    const { next, event } = change(await locked(tx, factoryUid, uid));
    await save(tx, next, false);
    await appendEvents(tx, [event]);
  }
}

/**
 * Returns the factories that have an automation with a trigger of the provider. Events for other factories are not
 * stored.
 */
export async function factoriesWithTrigger(
  sql: Sql,
  factoryUids: readonly string[],
  provider: string,
): Promise<Set<string>> {
  const { rows } = await sql.query<{ uid: string }>(
    "SELECT DISTINCT factory_uid AS uid FROM automations WHERE factory_uid IN (SELECT jsonb_array_elements_text($1::jsonb)::uuid) AND $2 = ANY (providers) AND deleted_at IS NULL",
    [JSON.stringify([...new Set(factoryUids)]), provider],
  );
  return new Set(rows.map(({ uid }) => uid));
}

/** Returns the factories of a team that have an automation with a trigger of the provider. */
export async function teamFactoriesWithTrigger(sql: Sql, teamUid: string, provider: string): Promise<string[]> {
  const { rows } = await sql.query<{ uid: string }>(
    "SELECT DISTINCT factory_uid AS uid FROM automations WHERE team_uid = $1::uuid AND $2 = ANY (providers) AND deleted_at IS NULL ORDER BY 1",
    [teamUid, provider],
  );
  return rows.map(({ uid }) => uid);
}

/** Deletes the automations of a factory that is being deleted. */
export async function deleteAutomationsOf(tx: Sql, factoryUid: string, now: Date): Promise<void> {
  await tx.query(
    "UPDATE automations SET deleted_at = $2::timestamptz, updated_at = $2::timestamptz, version = version + 1 WHERE factory_uid = $1::uuid AND deleted_at IS NULL",
    [factoryUid, now.toISOString()],
  );
}

/** Locks the automations of a factory until the transaction ends. */
const lockSet = (tx: Sql, factoryUid: string) =>
  tx.query("SELECT pg_advisory_xact_lock(hashtextextended('automations ' || $1::text, 0))::text", [factoryUid]);

async function count(sql: Sql, factoryUid: string, more = ""): Promise<number> {
  const { rows } = await sql.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM automations WHERE factory_uid = $1::uuid AND deleted_at IS NULL ${more}`,
    [factoryUid],
  );
  return rows[0]!.count;
}

async function locked(tx: Sql, factoryUid: string, uid: string): Promise<Automation> {
  await tx.query("SELECT 1 FROM automations WHERE factory_uid = $1::uuid AND uid = $2::uuid FOR UPDATE", [
    factoryUid,
    uid,
  ]);
  const [found] = await select(tx, "factory_uid = $1::uuid AND uid = $2::uuid", [factoryUid, uid]);
  if (!found) throw notFound("automation");
  return found;
}

async function insert(tx: Sql, automation: Automation): Promise<void> {
  await tx.query(
    `INSERT INTO automations (uid, factory_uid, team_uid, name, enabled, definition, providers, management, projected_definition, creator_type, creator_uid, version, created_at, updated_at)
     VALUES ($1::uuid, $2::uuid, $3::uuid, $4, $5::boolean, $6::jsonb, ARRAY(SELECT jsonb_array_elements_text($7::jsonb)), $8, $9::jsonb, $10, $11, $12::int, $13::timestamptz, $13::timestamptz)`,
    [
      automation.uid,
      automation.factoryUid,
      automation.teamUid,
      automation.name,
      automation.enabled,
      JSON.stringify(automation.rules),
      JSON.stringify(providersOf(automation)),
      automation.management,
      automation.projectedDefinition && JSON.stringify(automation.projectedDefinition),
      automation.creator.type,
      automation.creator.uid,
      automation.version,
      automation.createdAt.toISOString(),
    ],
  );
}

async function save(tx: Sql, automation: Automation, isDeleted: boolean): Promise<void> {
  await tx.query(
    `UPDATE automations SET name = $2, enabled = $3::boolean, definition = $4::jsonb, providers = ARRAY(SELECT jsonb_array_elements_text($5::jsonb)), projected_definition = $6::jsonb, creator_type = $7, creator_uid = $8,
            version = $9::int, updated_at = $10::timestamptz, deleted_at = CASE WHEN $11::boolean THEN $10::timestamptz END,
            creator_lost_access = $12::boolean
      WHERE uid = $1::uuid`,
    [
      automation.uid,
      automation.name,
      automation.enabled,
      JSON.stringify(automation.rules),
      JSON.stringify(providersOf(automation)),
      automation.projectedDefinition && JSON.stringify(automation.projectedDefinition),
      automation.creator.type,
      automation.creator.uid,
      automation.version,
      automation.updatedAt.toISOString(),
      isDeleted,
      automation.creatorLostAccess,
    ],
  );
}

const providersOf = ({ rules }: Automation): string[] =>
  [...new Set(rules.triggers.map(({ provider }) => provider))].toSorted();

type Row = {
  uid: string;
  factory_uid: string;
  team_uid: string;
  name: string;
  enabled: boolean;
  definition: AutomationRules;
  management: "live" | "files";
  projected_definition: AutomationPart | null;
  creator_type: string;
  creator_uid: string;
  creator_lost_access: boolean;
  version: number;
  created_at: Date;
  updated_at: Date;
  last_fired_at: Date | null;
};

async function select(sql: Sql, where: string, params: unknown[], more = ""): Promise<Automation[]> {
  const { rows } = await sql.query<Row>(
    `SELECT uid, factory_uid, team_uid, name, enabled, definition, management, projected_definition, creator_type, creator_uid, creator_lost_access, version, created_at, updated_at,
            (SELECT d.decided_at FROM decisions d WHERE d.automation_uid = a.uid AND d.run_uid IS NOT NULL ORDER BY d.decided_at DESC LIMIT 1) AS last_fired_at
       FROM automations a WHERE ${where} AND deleted_at IS NULL ORDER BY created_at, uid ${more}`,
    params,
  );
  return rows.map((row) => ({
    uid: as<AutomationUid>(row.uid),
    factoryUid: as<FactoryUid>(row.factory_uid),
    teamUid: as<TeamUid>(row.team_uid),
    name: row.name,
    enabled: row.enabled,
    rules: row.definition,
    management: row.management,
    projectedDefinition: row.projected_definition,
    creator: { type: row.creator_type, uid: row.creator_uid },
    version: row.version,
    // the previous release enables an automation without clearing creator_lost_access
    creatorLostAccess: row.creator_lost_access && !row.enabled,
    createdAt: new Date(row.created_at),
    updatedAt: new Date(row.updated_at),
    lastFiredAt: row.last_fired_at && new Date(row.last_fired_at),
  }));
}
