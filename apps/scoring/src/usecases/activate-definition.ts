import type { Clock } from "@millwright/clock";
import type { Database, Sql } from "@millwright/database";
import type { ScorerPart } from "@millwright/definition";
import { DomainError } from "@millwright/errors";
import { appendEvents } from "@millwright/events";
import { newUid } from "@millwright/ids";
import { canonicalJson } from "@millwright/json";
import { settingsOf } from "../domain/defined-scorer.ts";
import type { Scorer, ScorerSettings, ScorerUid } from "../domain/scorer.ts";
import type { Origin } from "../events/origin.ts";
import { scorerCreated, scorerDeleted } from "../events/scorer-events.ts";
import { clearNames, closeStage, findStage, lockActivation, lockScorersOf, type Stage } from "../store/definition-store.ts";
import { deleteScorers, insertScorer, nextId, saveScorer } from "../store/scorer-store.ts";
import { enqueueCancel } from "./cancel-judge-run.ts";
import { changed } from "./change-scorer.ts";

export type ActivateDefinitionDeps = {
  database: Pick<Database, "sql" | "transaction">;
  agents: {
    /** Uids of agents of a factory by name; absent and disabled ones have none. */
    uidsOf(factory: { uid: string; teamUid: string }, names: readonly string[]): Promise<ReadonlyMap<string, string>>;
  };
  clock: Clock;
};

/**
 * Rolls a factory's file scorers forward to a staged version; an older one changes nothing. A scorer is the same as long as its directory is
 * there, whatever its name; without its file it is deleted as by the API. Agents are resolved by name, so their owner must serve the version.
 * Returns the version in force.
 *
 * Errors: stage_missing (conflict, retryable): the version was never staged here.
 */
export async function activateDefinition(deps: ActivateDefinitionDeps, origin: Origin, target: { factoryUid: string; version: number }): Promise<number> {
  const { factoryUid, version } = target;
  const staged = await findStage(deps.database.sql, factoryUid, version);
  const names = new Set(staged?.part.scorers.flatMap(({ agents }) => (agents === "*" ? [] : agents)));
  const uids = staged ? await deps.agents.uidsOf({ uid: factoryUid, teamUid: staged.teamUid }, [...names]) : new Map<string, string>();
  return deps.database.transaction(async (tx) => {
    const inForce = await lockActivation(tx, factoryUid);
    if (inForce >= version) return inForce;
    if (!staged) throw new DomainError({ kind: "conflict", reason: "stage_missing", message: "This version of the definition was not staged.", retryable: true });
    await project(tx, staged, uids, origin, deps.clock.now());
    await closeStage(tx, factoryUid, version);
    return version;
  });
}

async function project(tx: Sql, { factoryUid, teamUid, part }: Stage, uids: ReadonlyMap<string, string>, origin: Origin, now: Date): Promise<void> {
  const scorers = await lockScorersOf(tx, factoryUid);
  const bySlug = new Map(scorers.flatMap((scorer) => (scorer.slug === null ? [] : [[scorer.slug, scorer] as const])));
  const slugs = new Set(part.scorers.map(({ slug }) => slug));
  const removed = [...bySlug.values()].filter(({ slug }) => !slugs.has(slug!));
  await deleteScorers(tx, removed, { event: (scorer) => scorerDeleted(scorer, origin), cancel: enqueueCancel });
  const taken = new Set(scorers.filter(({ slug }) => slug === null).map(({ name }) => name.toLowerCase()));
  const defined = part.scorers.map((each) => ({ part: each, before: bySlug.get(each.slug), settings: withFreeName(each, settingsOf(each, uidsOf(each, uids)), taken) }));
  const updates = defined.flatMap(({ part: { enabled }, before, settings }) => (before && !isSame(before, settings, enabled) ? [{ before: { ...before, enabled }, settings }] : []));
  await clearNames(tx, updates.map(({ before }) => before.uid));
  for (const { before, settings } of updates) {
    const { next, event } = changed(before, settings, now, origin);
    await saveScorer(tx, next);
    await appendEvents(tx, [event]);
  }
  for (const { part: { slug, enabled }, before, settings } of defined) {
    if (before) continue;
    const scorer: Scorer = {
      ...settings, uid: newUid<ScorerUid>(), id: await nextId(tx), factoryUid, teamUid, slug, kind: "user", enabled, version: 1, creator: origin.actor, createdAt: now, updatedAt: now,
    };
    await insertScorer(tx, scorer);
    await appendEvents(tx, [scorerCreated(scorer, origin)]);
  }
}

const uidsOf = ({ agents }: ScorerPart, uids: ReadonlyMap<string, string>): string[] => (agents === "*" ? [] : agents.flatMap((name) => uids.get(name) ?? []));

/** A scorer of the API may have taken the name since the stage: a committed definition must not fail, so the file's scorer gets its slug as a suffix. */
const withFreeName = ({ slug }: ScorerPart, settings: ScorerSettings, taken: ReadonlySet<string>): ScorerSettings =>
  taken.has(settings.name.toLowerCase()) ? { ...settings, name: `${settings.name} (${slug})` } : settings;

const isSame = (scorer: Scorer, settings: ScorerSettings, enabled: boolean): boolean =>
  scorer.enabled === enabled && canonicalJson({ ...scorer, ...settings }) === canonicalJson(scorer);
