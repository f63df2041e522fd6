import type { ConnectRouter } from "@connectrpc/connect";
import { identity } from "@millwright/contracts";
import { allowServices } from "@millwright/rpc";

export type FakeProfile = { uid: string; type: "user" | "service_account"; displayName?: string; photoUrl?: string };

/** Users and agents in memory. */
export class FakeIdentity {
  static readonly allow = allowServices(identity.IdentityService, { getProfiles: ["metrics"] });
  /** By uid. */
  readonly profiles = new Map<string, FakeProfile>();

  routes(router: ConnectRouter): void {
    router.service(identity.IdentityService, {
      getProfiles: async ({ uids }) => ({ profiles: uids.flatMap((uid) => this.profiles.get(uid) ?? []) }),
    });
  }

  /** Forgets everything. */
  clear(): void {
    this.profiles.clear();
  }
}
