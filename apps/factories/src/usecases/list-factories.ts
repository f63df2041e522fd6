import { can, teamsInView, teamsWith, type Caller } from "@millwright/caller";
import { clampPageSize, type Cursors } from "@millwright/paging";
import type { Factory } from "../domain/factory.ts";
import type { FactoryStore } from "../store/factory-store.ts";
import type { ScopeDeps } from "./scope.ts";

/** The position of a page: the last factory's name in the database's order, then its uid. */
type FactoryPosition = { nameKey: string; uid: string };

export type ListFactoriesDeps = {
  factories: Pick<FactoryStore, "list">;
  runs: ScopeDeps["runs"];
  cursors: Cursors;
};

export type ListFactoriesInput = { teamUid: string; search: string; pageSize: number; pageToken: string };

/**
 * Lists the factories that the caller may view, by name, then uid. `teamUid` takes precedence over the active team. The
 * list is empty if the caller may not view factories of that team. `search` is a literal part of the name or alias,
 * ignoring case. A run sees only its own factory.
 * Errors: invalid_cursor.
 */
export async function listFactories(
  deps: ListFactoriesDeps,
  caller: Caller,
  input: ListFactoriesInput,
): Promise<{ factories: Factory[]; nextPageToken: string }> {
  const teams =
    input.teamUid === ""
      ? teamsInView(caller, "factory.view")
      : can(caller, input.teamUid, "factory.view")
        ? teamsWith(caller, "factory.view").filter((uid) => uid === input.teamUid)
        : [];
  const bind = { team: input.teamUid || (caller.activeTeamUid ?? ""), search: input.search };
  const after =
    input.pageToken === "" ? undefined : readPosition(deps.cursors.open("factories", bind, input.pageToken));
  const only = caller.run ? ((await deps.runs.factoryOfRun(caller)) ?? null) : undefined;
  if (teams.length === 0 || only === null) return { factories: [], nextPageToken: "" };
  const limit = clampPageSize(input.pageSize, { default: 50, max: 100 });
  const rows = await deps.factories.list({
    teams,
    search: input.search,
    limit: limit + 1,
    only,
    after,
  });
  const page = rows.slice(0, limit);
  const last = page.at(-1)?.at;
  const nextPageToken =
    rows.length > limit && last ? deps.cursors.seal("factories", bind, [last.nameKey, last.uid]) : "";
  return { factories: page.map(({ factory }) => factory), nextPageToken };
}

const readPosition = ([nameKey, uid]: unknown[]): FactoryPosition => ({ nameKey: String(nameKey), uid: String(uid) });
