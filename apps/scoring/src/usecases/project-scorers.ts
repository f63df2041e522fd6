import type { Sql } from "@millwright/database";
import type { ScorerPart } from "@millwright/definition";
import { appendEvents } from "@millwright/events";
import { newUid } from "@millwright/ids";
import { canonicalJson } from "@millwright/json";
import { settingsOf } from "../domain/defined-scorer.ts";
import type { Scorer, ScorerSettings, ScorerUid } from "../domain/scorer.ts";
import type { Origin } from "../events/origin.ts";
import { scorerCreated, scorerDeleted } from "../events/scorer-events.ts";
import { clearScorerNames, lockScorersOf, type Stage } from "../store/definition-store.ts";
import { deleteScorers, insertScorer, nextId, saveScorer } from "../store/scorer-store.ts";
import { enqueueCancel } from "./cancel-judge-run.ts";
import { changed } from "./change-scorer.ts";

/**
 * Replaces the file-defined scorers of a factory by those of a stage, in the caller's transaction. `uids` has the uids
 * of agents by name.
 */
export async function projectScorers(
  tx: Sql,
  { factoryUid, teamUid, part }: Stage,
  uids: ReadonlyMap<string, string>,
  origin: Origin,
  now: Date,
): Promise<void> {
  const scorers = await lockScorersOf(tx, factoryUid);
  const bySlug = new Map(scorers.flatMap((scorer) => (scorer.slug === null ? [] : [[scorer.slug, scorer] as const])));
  const slugs = new Set(part.scorers.map(({ slug }) => slug));
  const removed = [...bySlug.values()].filter(({ slug }) => !slugs.has(slug!));
  await deleteScorers(tx, removed, { event: (scorer) => scorerDeleted(scorer, origin), cancel: enqueueCancel });
  const taken = new Set(scorers.filter(({ slug }) => slug === null).map(({ name }) => name.toLowerCase()));
  const defined = part.scorers.map((each) => ({
    part: each,
    before: bySlug.get(each.slug),
    settings: withFreeName(each, settingsOf(each, uidsOf(each, uids)), taken),
  }));
  const updates = defined.flatMap(({ part: { enabled }, before, settings }) =>
    before && !isSame(before, settings, enabled) ? [{ before: { ...before, enabled }, settings }] : [],
  );
  await clearScorerNames(
    tx,
    updates.map(({ before }) => before.uid),
  );
  for (const { before, settings } of updates) {
    const { next, event } = changed(before, settings, now, origin);
    await saveScorer(tx, next);
    await appendEvents(tx, [event]);
  }
  for (const {
    part: { slug, enabled },
    before,
    settings,
  } of defined) {
    if (before) continue;
    const scorer: Scorer = {
      ...settings,
      uid: newUid<ScorerUid>(),
      id: await nextId(tx),
      factoryUid,
      teamUid,
      slug,
      kind: "user",
      enabled,
      version: 1,
      creator: origin.actor,
      createdAt: now,
      updatedAt: now,
    };
    await insertScorer(tx, scorer);
    await appendEvents(tx, [scorerCreated(scorer, origin)]);
  }
}

const uidsOf = ({ agents }: ScorerPart, uids: ReadonlyMap<string, string>): string[] =>
  agents === "*" ? [] : agents.flatMap((name) => uids.get(name) ?? []);

/**
 * Appends the slug to the name if a scorer was created through the API with this name after the stage, because a
 * committed definition must not fail.
 */
const withFreeName = ({ slug }: ScorerPart, settings: ScorerSettings, taken: ReadonlySet<string>): ScorerSettings =>
  taken.has(settings.name.toLowerCase()) ? { ...settings, name: `${settings.name} (${slug})` } : settings;

const isSame = (scorer: Scorer, settings: ScorerSettings, enabled: boolean): boolean =>
  scorer.enabled === enabled && canonicalJson({ ...scorer, ...settings }) === canonicalJson(scorer);
