import { appendEvents, type NewEvent } from "@millwright/events";
import type { FactoryUid } from "@millwright/ids";
import type { Factory } from "../domain/factory.ts";
import type { DefinitionFile, OwnedDiagnostic, Source, SourceSettings, SourceStatus } from "../domain/source.ts";
import type { DefinitionSource, PrismaClient } from "../gen/prisma/client.ts";
import { followSource, type BranchEvents } from "./branch-store.ts";
import { lockFactory, lockSource } from "./factory-store.ts";
import { json, type Changes } from "./prisma-client.ts";

/**
 * The events of registering a source: for the factory, and for branches that become tracked or are no longer tracked.
 */
export type SourceEvents = BranchEvents & { updated: (factory: Factory) => NewEvent };

/** Returns the queries of definition sources. */
export function sourceStore(prisma: PrismaClient, changes: Changes) {
  return {
    async find(uid: FactoryUid): Promise<Source | undefined> {
      const row = await prisma.definitionSource.findUnique({ where: { factoryUid: uid } });
      return row ? toSource(row) : undefined;
    },

    /** Replaces the registered source. The active version is unchanged. Errors: factory_not_found. */
    put: (uid: FactoryUid, settings: SourceSettings, now: Date, events: SourceEvents): Promise<Source> =>
      changes.change(async (tx, sql) => {
        await lockSource(tx, uid);
        const factory = await lockFactory(tx, uid);
        const data = { ...toData(settings), updatedAt: now };
        const row = await tx.definitionSource.upsert({
          where: { factoryUid: uid },
          create: { factoryUid: uid, ...data },
          update: data,
        });
        const version = factory.version + 1;
        await tx.factory.update({ where: { uid }, data: { version, updatedAt: now } });
        await appendEvents(sql, [events.updated({ ...factory, version, updatedAt: now })]);
        await followSource(tx, sql, factory, settings, now, events);
        return toSource(row);
      }),
  };
}

export type SourceStore = ReturnType<typeof sourceStore>;

const toData = (settings: SourceSettings) =>
  settings.kind === "files"
    ? {
        kind: "files",
        files: json(settings.files),
        repositoryUrl: null,
        branch: null,
        directory: "",
        secretName: null,
        username: null,
      }
    : {
        kind: "git",
        files: json([]),
        repositoryUrl: settings.url,
        branch: settings.branch,
        directory: settings.directory,
        secretName: settings.secretName ?? null,
        username: settings.username ?? null,
      };

const toSource = (row: DefinitionSource): Source => ({
  settings:
    row.kind === "git"
      ? {
          kind: "git",
          url: row.repositoryUrl ?? "",
          branch: row.branch ?? "",
          directory: row.directory,
          secretName: row.secretName ?? undefined,
          username: row.username ?? undefined,
        }
      : { kind: "files", files: row.files as DefinitionFile[] },
  status: {
    state: row.state as SourceStatus["state"],
    appliedFingerprint: row.appliedFingerprint,
    appliedRevision: row.appliedRevision,
    appliedAt: row.appliedAt,
    diagnostics: row.diagnostics as unknown as OwnedDiagnostic[],
  },
});
