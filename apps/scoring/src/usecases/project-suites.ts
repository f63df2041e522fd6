import type { Sql } from "@millwright/database";
import type { BenchmarkPart } from "@millwright/definition";
import { appendEvents } from "@millwright/events";
import { newUid } from "@millwright/ids";
import { NO_AGENT, suiteSettingsOf, suiteTasksOf } from "../domain/defined-suite.ts";
import { suiteIdentity } from "../domain/suite-rules.ts";
import type { SuiteUid, SuiteWithTasks } from "../domain/suite.ts";
import type { Origin } from "../events/origin.ts";
import { suiteCreated, suiteDeleted, suiteUpdated } from "../events/suite-events.ts";
import type { Stage } from "../store/definition-store.ts";
import { clearSuiteNames, hideSuites, insertSuite, lockSuitesOf, saveSuite, saveTasks } from "../store/suite-store.ts";

/**
 * Replaces the file-defined suites of a factory by those of a stage, in the caller's transaction. `uids` has the uids
 * of agents by name.
 */
export async function projectSuites(
  tx: Sql,
  stage: Stage,
  uids: ReadonlyMap<string, string>,
  origin: Origin,
  now: Date,
): Promise<void> {
  const { part } = stage;
  const suites = await lockSuitesOf(tx, stage.factoryUid);
  const slugs = new Set(part.suites.map(({ slug }) => slug));
  await hideSuites(
    tx,
    suites.filter(({ slug }) => slug !== null && !slugs.has(slug)),
    now,
    (suite) => suiteDeleted(suite, origin),
  );
  const taken = new Set(suites.filter(({ slug }) => slug === null).map(({ name }) => name.toLowerCase()));
  const changes = part.suites.flatMap((each) => {
    const before = suites.find(({ slug }) => slug === each.slug);
    const next = withFreeName(nextSuite(stage, each, before, uids, origin, now), taken);
    return before && isSame(before, next) ? [] : [{ before, next }];
  });
  await clearSuiteNames(
    tx,
    changes.flatMap(({ before }) => before?.uid ?? []),
  );
  for (const { before, next } of changes) {
    if (before) await saveSuite(tx, next);
    else await insertSuite(tx, next);
    await saveTasks(tx, next.uid, before?.tasks ?? [], next.tasks);
    await appendEvents(tx, [before ? suiteUpdated(next, origin) : suiteCreated(next, origin)]);
  }
}

function nextSuite(
  { factoryUid, teamUid }: Stage,
  part: BenchmarkPart,
  before: SuiteWithTasks | undefined,
  uids: ReadonlyMap<string, string>,
  origin: Origin,
  now: Date,
): SuiteWithTasks {
  const settings = suiteSettingsOf(part, factoryUid, uids.get(part.agent) ?? NO_AGENT, before);
  const tasks = suiteTasksOf(part, before);
  if (before) return { ...before, ...settings, tasks, version: before.version + 1, updatedAt: now };
  return {
    ...settings,
    tasks,
    uid: newUid<SuiteUid>(),
    factoryUid,
    teamUid,
    slug: part.slug,
    version: 1,
    creator: origin.actor,
    createdAt: now,
    updatedAt: now,
  };
}

/**
 * Appends the slug to the name if a suite was created through the API with this name after the stage, because a
 * committed definition must not fail.
 */
const withFreeName = (suite: SuiteWithTasks, taken: ReadonlySet<string>): SuiteWithTasks =>
  taken.has(suite.name.toLowerCase()) ? { ...suite, name: `${suite.name} (${suite.slug})` } : suite;

const isSame = (before: SuiteWithTasks, next: SuiteWithTasks): boolean =>
  suiteIdentity(before, before.tasks) === suiteIdentity(next, next.tasks) &&
  before.tasks.every(({ uid }, index) => next.tasks[index]?.uid === uid);
