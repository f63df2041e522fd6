import { requireVerb, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import type { Definition } from "@millwright/definition";
import { isDomainError, notFound } from "@millwright/errors";
import type { NewEvent } from "@millwright/events";
import type { FactoryUid } from "@millwright/ids";
import type { Activation, AppliedBranch, Commit } from "../domain/apply.ts";
import { branchDeleted, branchErrorOf, headUnknown, noRepository, type TrackedBranch } from "../domain/branch.ts";
import { defineBy } from "../domain/factory-from-definition.ts";
import type { Factory } from "../domain/factory.ts";
import { type PlanItem, verbsFor } from "../domain/plan.ts";
import {
  definitionInvalid,
  fingerprintOf,
  sourceMissing,
  type OwnedDiagnostic,
  type Source,
  type SourceSettings,
  type Tree,
} from "../domain/source.ts";
import { automationEvent } from "../events/automation-events.ts";
import { definitionActivated, factoryUpdated } from "../events/factory-events.ts";
import { originOf } from "../events/origin.ts";
import type { ApplyStore } from "../store/apply-store.ts";
import type { BranchStore } from "../store/branch-store.ts";
import { activateWithin, type ActivateDeps } from "./activate-definition.ts";
import { underLease, type LeaseDeps } from "./apply-lease.ts";
import { aliasTakenAt, inOrder, stageAt, validate, type ValidateDeps } from "./check-source.ts";
import { findFactory } from "./scope.ts";
import type { SourceDeps } from "./source-deps.ts";
import { withWarnings, type SourceWarningsDeps } from "./source-warnings.ts";

export type ApplySourceDeps = SourceDeps &
  ValidateDeps &
  ActivateDeps &
  SourceWarningsDeps & {
    factories: SourceDeps["factories"] & ValidateDeps["factories"];
    applies: ValidateDeps["applies"] &
      SourceWarningsDeps["applies"] &
      LeaseDeps["applies"] &
      ActivateDeps["applies"] &
      Pick<ApplyStore, "open" | "commit" | "fail" | "settle" | "currentPlan">;
    branches: Pick<BranchStore, "find" | "findLive">;
    clock: Clock;
  };

export type Applied = { factory: Factory; source: Source; plan: PlanItem[] };

/**
 * Applies the registered source: reads its tree, validates it, stages it at every owner, commits the version and waits
 * up to 10 s for activation (state APPLYING if an owner is late; activation continues). A failure leaves the active
 * version unchanged. One apply at a time runs per factory. Applying the active revision returns it, unless the apply is
 * a repair: a repair creates another version, for owners that have lost their state.
 * Errors: factory_not_found · not_authorized (also if the plan changes what the caller may not change) · source_missing
 * (conflict) · source_unreachable · repository_not_allowed · definition_invalid (all diagnostics as details) ·
 * apply_in_progress (conflict, retryable).
 */
export async function applySource(
  deps: ApplySourceDeps,
  caller: Caller,
  factoryUid: string,
  isRepair = false,
): Promise<Applied> {
  const found = await findFactory(deps, caller, factoryUid, "source.apply");
  if (!(await deps.sources.find(found.uid))) throw sourceMissing();
  return putInForce(deps, caller, found, { isRepair });
}

/** `branchUid`: the tracked branch to apply. Absent: the newest head of the production branch. */
export type ApplyWhat = { readonly branchUid?: string; readonly isRepair?: boolean };

/** Applies the registered source, or a tracked branch of it at its registered head. Errors: those of its callers. */
export async function putInForce(
  deps: ApplySourceDeps,
  caller: Caller,
  found: Factory,
  what: ApplyWhat,
): Promise<Applied> {
  const version = await underLease(deps, found.uid, (token) => applyOnce(deps, caller, found.uid, token, what));
  await activateWithin(deps, { ...activationFor(caller, found), version });
  const [factory, source] = [await deps.factories.find(found.uid), await deps.sources.find(found.uid)];
  if (!factory || !source) throw sourceMissing(); // deleted concurrently
  return {
    factory,
    source: await withWarnings(deps, caller, factory, source),
    plan: await deps.applies.currentPlan(found.uid),
  };
}

/**
 * The target of an apply: settings that name the branch, the commit (absent: the newest), and where the state is
 * recorded.
 */
type Target = { settings: SourceSettings; sha?: string; branch?: AppliedBranch };

/**
 * Returns the target of an apply. It is read under the lease, so that the head is the currently registered one.
 * Errors: branch_not_found · branch_deleted · branch_head_unknown · source_not_git (all but the first conflict).
 */
async function targetOf(
  deps: ApplySourceDeps,
  uid: FactoryUid,
  { settings }: Source,
  branchUid: string | undefined,
): Promise<Target> {
  const branch =
    branchUid === undefined
      ? settings.kind === "git" && (await deps.branches.findLive(uid, settings.branch))
      : await deps.branches.find(uid, branchUid);
  if (branchUid === undefined) return { settings, branch: branch ? appliedBranch(branch, true) : undefined };
  if (!branch) throw notFound("branch");
  if (branch.deletedAt) throw branchDeleted();
  if (settings.kind !== "git") throw noRepository();
  if (branch.registeredHeadSha === null) throw headUnknown();
  return {
    settings: { ...settings, branch: branch.name },
    sha: branch.registeredHeadSha,
    branch: appliedBranch(branch, false),
  };
}

const appliedBranch = ({ uid, isProduction, registeredHeadSha }: TrackedBranch, isNewest: boolean): AppliedBranch => ({
  uid,
  isProduction,
  headBefore: registeredHeadSha,
  isNewest,
});

/** Applies under the lease and returns the active version. */
async function applyOnce(
  deps: ApplySourceDeps,
  caller: Caller,
  uid: FactoryUid,
  token: string,
  { branchUid, isRepair = false }: ApplyWhat,
): Promise<number> {
  const [factory, source] = [await deps.factories.find(uid), await deps.sources.find(uid)];
  if (!factory || !source) throw sourceMissing();
  const { settings, sha, branch } = await targetOf(deps, uid, source, branchUid);
  const failing = <T>(step: Promise<T>, dropped?: Activation): Promise<T> =>
    step.catch(async (error: unknown) => {
      // nothing is recorded if the caller may not apply
      const isRecorded = !(isDomainError(error) && error.kind === "permission_denied");
      await deps.applies.fail(uid, token, {
        now: deps.clock.now(),
        error: isRecorded ? branchErrorOf(error) : undefined,
        branch,
        dropped,
      });
      throw error;
    });
  const isServing = (revision: string): boolean =>
    !isRepair && factory.currentVersion > 0 && source.status.appliedFingerprint === fingerprintOf(settings, revision);
  const settled = async (): Promise<number> => {
    await deps.applies.settle(uid, token, branch, deps.clock.now());
    return factory.currentVersion;
  };
  if (sha !== undefined && isServing(sha)) return settled();
  const tree = await failing(deps.trees.take(settings, factory.teamUid, sha));
  if (isServing(tree.revision)) return settled();
  const { definition, diagnostics } = await validate(deps, caller, factory, tree);
  if (!definition) return failing(Promise.reject(definitionInvalid(diagnostics)));
  const activation = activationFor(caller, factory);
  const version = await deps.applies.open(uid, token, {
    fingerprint: fingerprintOf(settings, tree.revision),
    tree,
    definition,
    activation,
  });
  const opened = { ...activation, version };
  await failing(
    stageAndCommit(deps, caller, {
      factory,
      settings,
      tree,
      definition,
      diagnostics,
      activation: opened,
      token,
      branch,
    }),
    opened,
  );
  return version;
}

const activationFor = (caller: Caller, { uid, teamUid }: Factory): Omit<Activation, "version"> => ({
  factory: { uid, teamUid },
  actor: originOf(caller).actor,
  requestId: caller.requestId,
});

type Staging = {
  factory: Factory;
  settings: SourceSettings;
  branch?: AppliedBranch;
  tree: Tree;
  definition: Definition;
  diagnostics: OwnedDiagnostic[];
  activation: Activation;
  token: string;
};

async function stageAndCommit(deps: ApplySourceDeps, caller: Caller, staging: Staging): Promise<void> {
  const { factory, settings, branch, tree, definition, activation, token } = staging;
  const { version } = activation;
  const staged = await stageAt(deps, caller, factory, definition, { version, isDryRun: false, tree });
  const diagnostics = [...staging.diagnostics, ...staged.diagnostics].sort(inOrder);
  if (!staged.isValid) throw definitionInvalid(diagnostics);
  for (const verb of verbsFor(staged.plan)) requireVerb(caller, factory.teamUid, verb, "factory");
  const management = settings.kind === "git" ? "external_files" : "service_files";
  const now = deps.clock.now();
  const commit: Commit<NewEvent> = {
    activation,
    diagnostics: staging.diagnostics,
    plan: staged.plan,
    now,
    branch,
    automations: definition.automations,
    define: (current) => defineBy(current, { definition, before: staged.before }, version, management, now),
    events: (next, automations) => [
      factoryUpdated(next, originOf(caller), ["definition"]),
      definitionActivated(next, originOf(caller)),
      ...automations.map((change) => automationEvent(change.happened, change.automation, originOf(caller))),
    ],
  };
  await deps.applies.commit(factory.uid, token, commit).catch(async (error: unknown) => {
    throw isDomainError(error) && error.reason === "alias_taken"
      ? definitionInvalid([...diagnostics, await aliasTakenAt(tree)].sort(inOrder))
      : error;
  });
}
