import type { Transport } from "@connectrpc/connect";
import { serviceCaller } from "@millwright/caller";
import { identity } from "@millwright/contracts";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";
import type { Logger } from "@millwright/telemetry";

/** A user or an agent. `exists`: false for a deleted agent. */
export type PrincipalView = {
  readonly type: string;
  /** "" = none. */
  readonly name: string;
  readonly photoUrl: string | undefined;
  readonly exists: boolean;
};

/** Maximum wait for names; after it, a response has uids instead. */
const TIMEOUT_MS = 2_000;

/** Names and photos of users and agents. */
export function identityClient(transport: Transport, signer: CallerSigner, log: Logger) {
  const client = clientFor(identity.IdentityService, transport, { signer });
  return {
    /**
     * Returns users and agents by uid; unknown ones are left out. Returns undefined if the gateway does not respond,
     * because missing names must not fail a request. Called as this service: a run's creator may have left the team,
     * and the caller's right to view its runs has been checked.
     */
    async findPrincipals(
      requestId: string,
      teamUid: string,
      uids: readonly string[],
    ): Promise<ReadonlyMap<string, PrincipalView> | undefined> {
      if (uids.length === 0) return new Map();
      const options = call(serviceCaller(signer.service, requestId), { timeoutMs: TIMEOUT_MS });
      try {
        // Without a team, deleted agents have profiles too; with one, only principals of the team that exist.
        const [known, ofTeam] = await Promise.all([
          client.getProfiles({ uids: [...uids] }, options),
          client.getProfiles({ uids: [...uids], teamUid }, options),
        ]);
        const existing = new Set(ofTeam.profiles.map(({ uid }) => uid));
        return new Map(
          known.profiles.map((profile) => [profile.uid, toPrincipalView(profile, existing.has(profile.uid))]),
        );
      } catch (error) {
        log.warn(
          { operation: "find users and agents", error },
          "the names of creators could not be read; costs are returned without them",
        );
        return undefined;
      }
    },
  };
}

const toPrincipalView = (
  { type, displayName, email, photoUrl }: identity.Profile,
  isOfTeam: boolean,
): PrincipalView => ({
  type,
  name: displayName || email || "",
  photoUrl,
  exists: type === "user" || isOfTeam,
});
