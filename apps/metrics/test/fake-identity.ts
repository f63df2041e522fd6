import type { ConnectRouter } from "@connectrpc/connect";
import { identity } from "@millwright/contracts";
import { DomainError } from "@millwright/errors";
import { allowServices } from "@millwright/rpc";

/** `teamUids`: where it is a member, or to which team the agent belongs; a deleted agent has none. */
export type FakeProfile = {
  uid: string;
  type: "user" | "service_account";
  displayName?: string;
  email?: string;
  photoUrl?: string;
  teamUids?: readonly string[];
};

/** Users and agents in memory. */
export class FakeIdentity {
  static readonly allow = allowServices(identity.IdentityService, { getProfiles: ["metrics"] });
  /** By uid. */
  readonly profiles = new Map<string, FakeProfile>();
  /** Whether every call fails. */
  isFailing = false;

  routes(router: ConnectRouter): void {
    router.service(identity.IdentityService, {
      getProfiles: async ({ uids, teamUid }) => {
        if (this.isFailing)
          throw new DomainError({
            kind: "unavailable",
            reason: "gateway_unavailable",
            message: "The gateway is not available.",
          });
        const found = uids.flatMap((uid) => this.profiles.get(uid) ?? []);
        return { profiles: found.filter(({ teamUids = [] }) => teamUid === "" || teamUids.includes(teamUid)) };
      },
    });
  }

  /** Forgets everything. */
  clear(): void {
    this.profiles.clear();
    this.isFailing = false;
  }
}
