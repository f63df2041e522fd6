import type { Sql } from "@millwright/database";
import type { TeamUid } from "@millwright/ids";

const OF_FACTORY = "factory_uid = $1";
const OF_TEAM = "team_uid = (SELECT team_uid FROM public.run_facts WHERE factory_uid = $1 LIMIT 1)";

/** Sums that triggers maintain, by the table whose rows they sum. */
const SUMS = {
  run_facts: { trigger: "count_new_runs", into: ["run_days"], of: OF_FACTORY },
  ledger_entries: { trigger: "sum_new_entries", into: ["cost_group_days", "tree_costs"], of: OF_FACTORY },
  pull_requests: { trigger: "count_new_merges", into: ["repository_merge_days"], of: OF_TEAM },
} as const;

/** Read models, without counts that are zero again. */
const READ_MODELS: Readonly<Record<string, string>> = {
  run_days: "SELECT * FROM run_days WHERE factory_uid = $1 AND runs <> 0",
  repository_merge_days: `SELECT * FROM repository_merge_days WHERE ${OF_TEAM} AND merged <> 0`,
  cost_group_days: "SELECT * FROM cost_group_days WHERE factory_uid = $1",
  tree_costs: "SELECT * FROM tree_costs WHERE factory_uid = $1",
  pull_request_shares: "SELECT * FROM pull_request_shares WHERE factory_uid = $1",
  factory_pull_requests: "SELECT * FROM factory_pull_requests WHERE factory_uid = $1",
};

export type FactoryOfTeam = { readonly uid: string; readonly teamUid: TeamUid };

/** Lists the factories that have facts. */
export async function listFactories(sql: Sql): Promise<FactoryOfTeam[]> {
  const { rows } = await sql.query<FactoryOfTeam>(
    `SELECT factory_uid AS uid, (array_agg(team_uid))[1] AS "teamUid" FROM run_facts GROUP BY factory_uid ORDER BY factory_uid`,
  );
  return rows;
}

/** Returns a hash of the factory's rows by read model. */
export async function hashReadModels(tx: Sql, factoryUid: string): Promise<ReadonlyMap<string, string>> {
  const hashes = new Map<string, string>();
  for (const [table, query] of Object.entries(READ_MODELS)) {
    const { rows } = await tx.query<{ hash: string }>(
      `SELECT count(*) || ' ' || coalesce(md5(string_agg(row, E'\\n' ORDER BY row)), '') AS hash FROM (SELECT model::text AS row FROM (${query}) model) rows`,
      [factoryUid],
    );
    hashes.set(table, rows[0]!.hash);
  }
  return hashes;
}

/**
 * Recomputes the factory's sums. Its facts are copied into temporary tables of the same names, where the same triggers
 * sum them; so there is one definition of every sum. The connection must not have run these triggers before, because
 * their plans name the permanent tables then.
 */
export async function rebuildSums(tx: Sql, factoryUid: string): Promise<void> {
  for (const [source, { trigger, into, of }] of Object.entries(SUMS)) {
    // The lock of a factory does not prevent transactions of other factories from writing rows of the team.
    if (of === OF_TEAM) await tx.query(`LOCK TABLE public.${source} IN SHARE ROW EXCLUSIVE MODE`);
    for (const table of [source, ...into])
      await tx.query(`CREATE TEMPORARY TABLE ${table} (LIKE public.${table} INCLUDING INDEXES) ON COMMIT DROP`);
    await tx.query(
      `CREATE TRIGGER again AFTER INSERT ON pg_temp.${source} REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION ${trigger}()`,
    );
    await tx.query(`INSERT INTO pg_temp.${source} SELECT * FROM public.${source} WHERE ${of}`, [factoryUid]);
    for (const table of into) {
      await tx.query(`DELETE FROM public.${table} WHERE ${of}`, [factoryUid]);
      await tx.query(`INSERT INTO public.${table} SELECT * FROM pg_temp.${table}`);
    }
    for (const table of [source, ...into]) await tx.query(`DROP TABLE pg_temp.${table}`);
  }
}

/** Removes the factory's shares and records of pull requests. Returns what they are made of. */
export async function clearPullRequests(
  tx: Sql,
  factoryUid: string,
): Promise<{ rootRunUids: string[]; urlKeys: string[] }> {
  await tx.query("DELETE FROM pull_request_shares WHERE factory_uid = $1", [factoryUid]);
  await tx.query("DELETE FROM factory_pull_requests WHERE factory_uid = $1", [factoryUid]);
  const { rows } = await tx.query<{ root_run_uid: string; url_key: string }>(
    "SELECT DISTINCT root_run_uid, url_key FROM produced_pull_requests WHERE factory_uid = $1",
    [factoryUid],
  );
  return {
    rootRunUids: [...new Set(rows.map((row) => row.root_run_uid))],
    urlKeys: [...new Set(rows.map((row) => row.url_key))],
  };
}
