import { z } from "zod";
import { requireVerb } from "@millwright/caller";
import type { Sql } from "@millwright/database";
import type { Cursors } from "@millwright/paging";
import { cursor, PageInfo, pageInfo, pageLimit, pathUid, route, timestamp, type Route } from "../../rest/index.ts";
import { listAuditEntries, type AuditEntry } from "../../store/audit-store.ts";
import { openPosition, pageOf } from "./identity-deps.ts";

const AuditRecord = z
  .object({
    uid: z.string(),
    type: z.string().meta({ description: "Such as millwright.key.created.v1." }),
    source: z.string().meta({ description: "The service that published the event." }),
    entity: z.string(),
    entity_uid: z.string(),
    actor: z.object({ type: z.string(), uid: z.string() }),
    request_id: z.string(),
    cause: z.string().optional(),
    occurred_at: timestamp(),
    payload: z.record(z.string(), z.unknown()),
  })
  .meta({ id: "AuditEntry" });

/** Returns the route of a team's audit log. Millwright extension. */
export const auditRoute = ({ sql, cursors }: { sql: Sql; cursors: Cursors }): Route =>
  route({
    method: "GET",
    path: "/team/{uid}/audit",
    extension: true,
    summary: "Read a team's audit log, newest first",
    description: "Collected from the events of all services. An entry appears within seconds of its change.",
    verbs: ["team.manage"],
    errors: [403],
    params: z.object({ uid: pathUid("team") }),
    query: z.object({ limit: pageLimit(50), cursor: cursor() }),
    response: z.object({ entries: z.array(AuditRecord), page_info: PageInfo }),
    handler: async ({ caller, params: { uid }, query }) => {
      requireVerb(caller, uid, "team.manage", "team");
      const bind = { team: uid };
      const after = query.cursor === undefined ? undefined : openPosition(cursors.open("audit", bind, query.cursor));
      const rows = await listAuditEntries(sql, uid, after && { occurredAt: after.at, uid: after.uid }, query.limit + 1);
      const { items, nextCursor } = pageOf(rows, query.limit, (entry) =>
        cursors.seal("audit", bind, [entry.occurredAt, entry.uid]),
      );
      return { entries: items.map(auditRecord), page_info: pageInfo(nextCursor) };
    },
  });

const auditRecord = (entry: AuditEntry): z.input<typeof AuditRecord> => ({
  uid: entry.uid,
  type: entry.type,
  source: entry.source,
  entity: entry.entity,
  entity_uid: entry.entityUid,
  actor: { type: entry.actorType, uid: entry.actorUid },
  request_id: entry.requestId,
  cause: entry.cause ?? undefined,
  occurred_at: entry.occurredAt.toISOString(),
  payload: entry.payload as Record<string, unknown>,
});
