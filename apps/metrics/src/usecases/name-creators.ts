import type { Caller } from "@millwright/caller";
import type { PrincipalView } from "../clients/identity-client.ts";

export type PrincipalDeps = {
  readonly principals: {
    /**
     * Returns users and agents by uid; unknown ones are left out. Returns undefined if the gateway does not respond.
     */
    findPrincipals(
      requestId: string,
      teamUid: string,
      uids: readonly string[],
    ): Promise<ReadonlyMap<string, PrincipalView> | undefined>;
  };
};

/** A creator of runs. `type`: user, agent, service or team. */
export type CreatorRef = { readonly type: string; readonly uid: string };

export type NamedCreator = { readonly label: string; readonly deleted: boolean; readonly photoUrl: string | undefined };

/** Returns labels of creators by uid: of a user or an agent its name, or its uid if the name is not known. */
export async function nameCreators(
  { principals }: PrincipalDeps,
  caller: Caller,
  teamUid: string,
  creators: readonly CreatorRef[],
): Promise<ReadonlyMap<string, NamedCreator>> {
  const uids = new Set(creators.filter(isPrincipal).map(({ uid }) => uid));
  const found = await principals.findPrincipals(caller.requestId, teamUid, [...uids]);
  return new Map(
    creators.map((creator) => [
      creator.uid,
      isPrincipal(creator) ? describePrincipal(creator.uid, found) : describePlatform(creator),
    ]),
  );
}

const isPrincipal = ({ type }: CreatorRef): boolean => type === "user" || type === "agent";

function describePrincipal(uid: string, found: ReadonlyMap<string, PrincipalView> | undefined): NamedCreator {
  const principal = found?.get(uid);
  return {
    label: principal?.name || uid,
    deleted: found !== undefined && !principal?.exists,
    photoUrl: principal?.photoUrl,
  };
}

/** Describes creators without a profile. The uid of a service is its name. */
function describePlatform({ type, uid }: CreatorRef): NamedCreator {
  const label = type === "service" ? `${uid} (service)` : type === "team" ? "Team" : uid;
  return { label, deleted: false, photoUrl: undefined };
}
