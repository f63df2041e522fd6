import { branchPushOf, repositoryAddress, type CodeHostDelivery } from "@millwright/code-host-events";
import { REGISTER_PUSH } from "../domain/branch.ts";
import type { BranchStore } from "../store/branch-store.ts";
import { MISSING, registerHead, type HeadDeps } from "./branch-heads.ts";

export type RegisterPushDeps = HeadDeps & {
  deliveries: {
    /** Returns a delivery, or undefined if it is absent or pruned. */
    codeHostDelivery(uid: string): Promise<CodeHostDelivery | undefined>;
  };
  branches: Pick<BranchStore, "findNamed" | "pollSoon">;
  heads: { wake(): void };
};

/**
 * Registers a push of a code host. Deliveries may arrive in any order. Therefore a push is registered only if it starts
 * at the registered head, and the head is polled after every push.
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
  await deps.branches.pollSoon(moved.map(({ uid }) => uid));
  deps.heads.wake();
}

/** Handles the work of a push. Failures are retried. */
export const pushWork = (deps: RegisterPushDeps) => ({
  [REGISTER_PUSH]: ({ payload }: { payload: unknown }) =>
    registerPush(deps, payload as { deliveryUid: string; teamUid: string }),
});
