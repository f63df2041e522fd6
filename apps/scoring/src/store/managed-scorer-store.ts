import { isUniqueViolation, type Database, type Sql } from "@millwright/database";
import { appendEvents, type NewEvent } from "@millwright/events";
import type { Scorer } from "../domain/scorer.ts";
import { SCORER_COLUMNS, toScorer, type ScorerRow } from "./scorer-rows.ts";
import { insertScorer, nextId, saveScorer, type NewScorer } from "./scorer-store.ts";

export type ManagedScorerChange = { readonly next: Scorer; readonly event: NewEvent };
const TRIES_MAX = 3;

/** Stores the managed scorer of each factory, which judges the correctness of benchmark tasks. */
export function managedScorerStore(database: Database) {
  return {
    /**
     * Returns the managed scorer of a factory with `change` applied; inserts `initial` if there is none. If another
     * scorer of the factory has the name, a number is appended. Concurrent calls insert only one scorer.
     */
    async ensure(
      initial: NewScorer,
      created: (scorer: Scorer) => NewEvent,
      change: (scorer: Scorer) => ManagedScorerChange | undefined,
    ): Promise<Scorer> {
      for (let tries = 1; ; tries++) {
        try {
          return await database.transaction(
            async (tx) => (await updateManaged(tx, initial.factoryUid, change)) ?? insertManaged(tx, initial, created),
          );
        } catch (error) {
          // a concurrent launch, or a scorer of the same name, was inserted first
          if (!isUniqueViolation(error) || tries === TRIES_MAX) throw error;
        }
      }
    },
  };
}

export type ManagedScorerStore = ReturnType<typeof managedScorerStore>;

async function updateManaged(
  tx: Sql,
  factoryUid: string,
  change: (scorer: Scorer) => ManagedScorerChange | undefined,
): Promise<Scorer | undefined> {
  const { rows } = await tx.query<ScorerRow>(
    `SELECT ${SCORER_COLUMNS} FROM scorers s WHERE s.factory_uid = $1 AND s.kind = 'benchmark_task_correctness' FOR UPDATE`,
    [factoryUid],
  );
  const scorer = rows.map(toScorer)[0];
  const changed = scorer && change(scorer);
  if (!changed) return scorer;
  await saveScorer(tx, changed.next);
  await appendEvents(tx, [changed.event]);
  return changed.next;
}

async function insertManaged(tx: Sql, initial: NewScorer, created: (scorer: Scorer) => NewEvent): Promise<Scorer> {
  const { rows } = await tx.query<{ taken: string[] }>(
    "SELECT coalesce(array_agg(lower(name)), '{}') AS taken FROM scorers WHERE factory_uid = $1",
    [initial.factoryUid],
  );
  const scorer = { ...initial, id: await nextId(tx), name: freeName(initial.name, new Set(rows[0]!.taken)) };
  await insertScorer(tx, scorer);
  await appendEvents(tx, [created(scorer)]);
  return scorer;
}

function freeName(name: string, taken: ReadonlySet<string>): string {
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? name : `${name} (${number})`;
    if (!taken.has(candidate.toLowerCase())) return candidate;
  }
}
