import { branchPushOf, repositoryAddress, type CodeHostDelivery } from "@millwright/code-host-events";
import { REGISTER_PUSH, type TrackedBranch } from "../domain/branch.ts";
import { MISSING, registerHead, type HeadDeps } from "./branch-heads.ts";

export type RegisterPushDeps = HeadDeps & {
  deliveries: {
    /** Undefined: there is none, or it was forgotten. */
    codeHostDelivery(uid: string): Promise<CodeHostDelivery | undefined>;
  };
  branches: {
    /** The live tracked branches of a team that have this name. */
    findNamed(teamUid: string, name: string): Promise<TrackedBranch[]>;
    /** Has their heads looked up at once. */
    lookSoon(uids: readonly string[]): Promise<void>;
  };
  heads: { wake(): void };
};

/**
 * Registers what a code host says was pushed. Deliveries come in any order: one that continues from the registered head is taken
 * at its word, and the repository is asked after every one.
 */
export async function registerPush(
  deps: RegisterPushDeps,
  { deliveryUid, teamUid }: { deliveryUid: string; teamUid: string },
): Promise<void> {
  const delivery = await deps.deliveries.codeHostDelivery(deliveryUid);
  const push = delivery && branchPushOf(delivery);
  if (!push) return;
  const named = await deps.branches.findNamed(teamUid, push.branch);
  const moved = named.filter(({ repositoryUrl }) => push.addresses.includes(repositoryAddress(repositoryUrl) ?? ""));
  for (const branch of moved) {
    if (branch.registeredHeadSha !== (push.beforeSha ?? null)) continue;
    await registerHead(
      deps,
      branch,
      push.headSha === undefined ? { head: null, error: MISSING } : { head: push.headSha, error: null },
    );
  }
  await deps.branches.lookSoon(moved.map(({ uid }) => uid));
  deps.heads.wake();
}

/** The work that a push leaves: whatever fails of it is tried again. */
export const pushWork = (deps: RegisterPushDeps) => ({
  [REGISTER_PUSH]: ({ payload }: { payload: unknown }) =>
    registerPush(deps, payload as { deliveryUid: string; teamUid: string }),
});
