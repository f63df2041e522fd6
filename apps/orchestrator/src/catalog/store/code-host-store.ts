import { isUniqueViolation, prismaSql } from "@millwright/database";
import { DomainError } from "@millwright/errors";
import type { TeamUid } from "@millwright/ids";
import type { CodeHost } from "../domain/code-host.ts";
import type { OnceRequest } from "../../storage/domain/once-request.ts";
import type { PrismaClient } from "../../gen/prisma/client.ts";
import type { CodeHostModel } from "../../gen/prisma/models.ts";
import { firstResult } from "../../storage/store/idempotency-store.ts";
import { createOnce } from "../../storage/store/prisma-client.ts";

export type CodeHostStore = {
  /** Returns the connections of these teams, by name; ties by uid. */
  list(teams: readonly TeamUid[]): Promise<CodeHost[]>;
  /** Returns undefined if the connection is absent or belongs to another team. */
  find(teams: readonly TeamUid[], uid: string): Promise<CodeHost | undefined>;
  /** Returns what an earlier request with the same key created. Errors: idempotency_mismatch (conflict). */
  findCreated(request: OnceRequest): Promise<CodeHost | undefined>;
  /**
   * Inserts the connection once per key of the request; repeated calls return the first result. Errors: name_taken,
   * idempotency_mismatch (conflict).
   */
  insert(host: CodeHost, request: OnceRequest): Promise<CodeHost>;
  delete(uid: string): Promise<void>;
};

/** Stores code-host connections with Prisma. */
export function codeHostStore(prisma: PrismaClient): CodeHostStore {
  return {
    async list(teams) {
      const rows = await prisma.codeHost.findMany({
        where: { teamUid: { in: [...teams] } },
        orderBy: [{ name: "asc" }, { uid: "asc" }],
      });
      return rows.map(toCodeHost);
    },
    async find(teams, uid) {
      const row = await prisma.codeHost.findFirst({ where: { uid, teamUid: { in: [...teams] } } });
      return row ? toCodeHost(row) : undefined;
    },
    async findCreated(request) {
      const row = (await firstResult(prismaSql(prisma), request)) as CodeHostModel | undefined;
      return row && revived(row);
    },
    async insert(host, request) {
      try {
        const row = await createOnce(prisma, request, (tx) =>
          tx.codeHost.create({ data: { ...host, owners: [...host.owners] } }),
        );
        return revived(row);
      } catch (error) {
        if (!isUniqueViolation(error)) throw error;
        throw new DomainError({
          kind: "conflict",
          reason: "name_taken",
          message: `The team already has a connection "${host.name}". Choose another name.`,
          cause: error,
        });
      }
    },
    async delete(uid) {
      await prisma.codeHost.deleteMany({ where: { uid } });
    },
  };
}

/** Converts a created row; the times of a stored result are strings. */
const revived = (row: CodeHostModel): CodeHost => toCodeHost({ ...row, createdAt: new Date(row.createdAt) });

const toCodeHost = ({ kind, teamUid, ...row }: CodeHostModel): CodeHost => ({
  ...row,
  teamUid: teamUid as TeamUid,
  kind: kind as CodeHost["kind"],
});
