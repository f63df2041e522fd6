import type { Sql } from "@millwright/database";
import { sharesOf } from "../domain/shares.ts";
import { jsonColumns } from "./json-columns.ts";

export type SharedPullRequest = { readonly factoryUid: string; readonly urlKey: string };

type TreeRow = {
  root_run_uid: string;
  factory_uid: string;
  url_keys: string[];
  inference: string;
  compute: string;
  platform: string;
};

const KEY = jsonColumns({ factory_uid: "uuid", url_key: "text", root_run_uid: "uuid" });
const MICROS = jsonColumns({ inference_micros: "bigint", compute_micros: "bigint", platform_micros: "bigint" });

/** Splits the spend of run trees over their pull requests again. Returns the pull requests of these trees. */
export async function shareTrees(tx: Sql, rootRunUids: readonly string[]): Promise<SharedPullRequest[]> {
  const { rows } = await tx.query<TreeRow>(
    `SELECT p.root_run_uid, p.factory_uid, p.url_keys,
            coalesce(sum(t.micros) FILTER (WHERE t.component = 'inference'), 0)::text AS inference,
            coalesce(sum(t.micros) FILTER (WHERE t.component = 'compute'), 0)::text AS compute,
            coalesce(sum(t.micros) FILTER (WHERE t.component = 'platform'), 0)::text AS platform
       FROM (SELECT root_run_uid, factory_uid, array_agg(DISTINCT url_key) AS url_keys
               FROM produced_pull_requests
              WHERE root_run_uid = ANY($1::uuid[])
              GROUP BY root_run_uid, factory_uid) p
       LEFT JOIN tree_costs t ON t.root_run_uid = p.root_run_uid
      GROUP BY p.root_run_uid, p.factory_uid, p.url_keys`,
    [rootRunUids],
  );
  const shares = rows.flatMap((tree) => {
    const spend = {
      inferenceMicros: BigInt(tree.inference),
      computeMicros: BigInt(tree.compute),
      platformMicros: BigInt(tree.platform),
    };
    return sharesOf(spend, tree.url_keys).map((share) => ({
      ...share,
      factoryUid: tree.factory_uid,
      rootRunUid: tree.root_run_uid,
    }));
  });
  if (shares.length === 0) return [];
  await tx.query(
    `INSERT INTO pull_request_shares AS s (${KEY.list()}, ${MICROS.list()})
     SELECT ${KEY.list()}, ${MICROS.list()}
       FROM json_to_recordset($1::json) AS share (${KEY.definitions}, ${MICROS.definitions})
     ON CONFLICT (${KEY.list()}) DO UPDATE SET ${MICROS.excluded}
     WHERE s.* IS DISTINCT FROM excluded.*`,
    [
      JSON.stringify(
        shares.map((share) => ({
          factory_uid: share.factoryUid,
          url_key: share.urlKey,
          root_run_uid: share.rootRunUid,
          inference_micros: String(share.inferenceMicros),
          compute_micros: String(share.computeMicros),
          platform_micros: String(share.platformMicros),
        })),
      ),
    ],
  );
  return shares.map(({ factoryUid, urlKey }) => ({ factoryUid, urlKey }));
}
