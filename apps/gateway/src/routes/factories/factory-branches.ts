import { z } from "zod";
import type { factories as proto } from "@millwright/contracts";
import { DomainError } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { EXTENSION, json, pathUid, Reply, route, timestamp, type Route, type RouteInput } from "../../rest/index.ts";
import { Diagnostic, diagnosticRecord } from "./factory-source.ts";
import { factoryParams } from "./factories.ts";
import { isoTime } from "../formats/json-values.ts";

const APPLY_TIMEOUT_MS = 60_000;

const BranchStatus = z
  .object({
    uid: z.string(),
    factory_uid: z.string(),
    team_uid: z.string(),
    name: z.string(),
    repository: z.object({
      owner: z.string(),
      repo: z.string(),
      code_forge: z.enum(["GITHUB", "GITLAB", "AZURE_DEVOPS", "NONE"]),
    }),
    state: z
      .enum(["ACTIVE", "APPLYING", "FAILED", "DELETED"])
      .describe("State of the last apply. DELETED: the branch is no longer tracked."),
    freshness: z
      .enum(["CURRENT", "STALE", "UNKNOWN"])
      .describe(
        "Whether the registered head is applied. UNKNOWN: the head is not known, the repository is unreachable, or the branch is no longer tracked.",
      ),
    is_production: z.boolean().describe("Whether this is the branch of the factory's source."),
    is_serving: z.boolean().meta({ ...EXTENSION, description: "Whether the active definition is from this branch." }),
    registered_head_sha: z.string().nullable(),
    applied_sha: z.string().nullable(),
    last_applied_at: timestamp().nullable(),
    last_checked_at: timestamp().nullable(),
    last_error: z
      .object({ code: z.string(), message: z.string(), diagnostics: z.array(Diagnostic) })
      .nullable()
      .describe("Error of the last apply if it failed, otherwise of the last check for the head."),
    created_at: timestamp(),
    updated_at: timestamp(),
    deleted_at: timestamp().optional(),
  })
  .meta({ id: "BranchStatus" });

export type BranchRoutesDeps = {
  upstreams: Pick<Upstreams, "factories" | "branches">;
  /** Returns whether the team has the capability `factory_branches`. */
  hasFactoryBranches: (teamUid: string) => Promise<boolean>;
};

/**
 * Returns the routes of tracked branches of a factory's definition repository. Listing and tracking are Millwright
 * extensions.
 */
export function factoryBranchRoutes({
  upstreams: { factories, branches },
  hasFactoryBranches,
}: BranchRoutesDeps): Route[] {
  /**
   * Throws `factory_branches_off` (feature_off) unless the factory's team has the capability.
   * Errors: factory_not_found · not_authorized.
   */
  const requireCapability = async (
    input: RouteInput<{ uid: string }, unknown, unknown, Parameters<typeof onBehalf>[0]["caller"]>,
  ): Promise<void> => {
    const { factory } = await factories.getFactory({ uid: input.params.uid }, onBehalf(input));
    if (await hasFactoryBranches(factory!.teamUid)) return;
    throw new DomainError({
      kind: "feature_off",
      reason: "factory_branches_off",
      message: "Tracked branches are disabled for the team. Enable its capability factory_branches.",
    });
  };
  const path = "/factory/{uid}/branches/{branch_uid}";
  const params = factoryParams.extend({ branch_uid: pathUid("branch") });
  return [
    route({
      method: "GET",
      path: "/factory/{uid}/branches",
      summary: "List a factory's tracked branches",
      extension: true,
      description:
        "The production branch first, then by name. A factory tracks at most 50 branches. Branches that are no longer tracked are omitted.",
      verbs: ["factory.view"],
      errors: [403],
      params: factoryParams,
      response: z.object({ branches: z.array(BranchStatus) }),
      handler: async (input) => {
        await requireCapability(input);
        return {
          branches: (await branches.listBranches({ factoryUid: input.params.uid }, onBehalf(input))).branches.map(
            branchRecord,
          ),
        };
      },
    }),
    route({
      method: "POST",
      path: "/factory/{uid}/branches",
      summary: "Track a branch of the definition's repository",
      extension: true,
      description:
        "The source's branch is always tracked. A branch that is already tracked returns 200. A branch that was tracked before gets a new uid.",
      verbs: ["source.apply"],
      errors: [403, 409],
      params: factoryParams,
      body: z.object({ name: z.string().min(1).max(255) }),
      status: 201,
      responses: { 200: { description: "The branch is already tracked.", schema: BranchStatus } },
      response: BranchStatus,
      handler: async (input) => {
        await requireCapability(input);
        const { branch, created } = await branches.trackBranch(
          { factoryUid: input.params.uid, name: input.body.name },
          onBehalf(input),
        );
        return created ? branchRecord(branch!) : json(200, branchRecord(branch!));
      },
    }),
    route({
      method: "GET",
      path,
      summary: "Read a tracked branch",
      description: "Returns stored state without contacting the repository.",
      verbs: ["factory.view"],
      errors: [403],
      params,
      response: BranchStatus,
      handler: async (input) => {
        await requireCapability(input);
        return branchRecord(
          (
            await branches.getBranch(
              { factoryUid: input.params.uid, branchUid: input.params.branch_uid },
              onBehalf(input),
            )
          ).branch!,
        );
      },
    }),
    route({
      method: "DELETE",
      path,
      summary: "Stop tracking a branch",
      description:
        "Stops tracking permanently. The branch has state DELETED for 30 days and is then removed. The repository, the active definition and existing runs are unchanged. An unknown branch returns 204, the production branch 409.",
      verbs: ["source.apply"],
      errors: [403, 409],
      params: factoryParams.extend({ branch_uid: z.string() }),
      status: 204,
      handler: async (input) => {
        await requireCapability(input);
        const { uid, branch_uid: text } = input.params;
        await branches.deleteBranch(
          { factoryUid: uid, branchUid: isUuid(text) ? text.toLowerCase() : text },
          onBehalf(input),
        );
        return new Reply(204);
      },
    }),
    route({
      method: "POST",
      path: `${path}/apply`,
      summary: "Apply the definition at a branch's registered head",
      description:
        "Applies the registered head; the request names no commit or repository. Repeated and concurrent requests converge. Requires permission to change every resource in the plan, as applying the source does. Existing runs keep their settings.",
      verbs: ["source.apply"],
      errors: [403, 409],
      params,
      timeoutMs: APPLY_TIMEOUT_MS,
      response: BranchStatus,
      handler: async (input) => {
        await requireCapability(input);
        return branchRecord(
          (
            await branches.applyBranch(
              { factoryUid: input.params.uid, branchUid: input.params.branch_uid },
              onBehalf(input, { timeoutMs: APPLY_TIMEOUT_MS }),
            )
          ).branch!,
        );
      },
    }),
  ];
}

const branchRecord = (branch: proto.Branch): z.input<typeof BranchStatus> => ({
  uid: branch.uid,
  factory_uid: branch.factoryUid,
  team_uid: branch.teamUid,
  name: branch.name,
  repository: {
    owner: branch.repository?.owner ?? "",
    repo: branch.repository?.repo ?? "",
    code_forge: (branch.repository?.codeForge || "NONE") as "NONE",
  },
  state: branch.state as "ACTIVE",
  freshness: branch.freshness as "CURRENT",
  is_production: branch.isProduction,
  is_serving: branch.isServing,
  registered_head_sha: branch.registeredHeadSha ?? null,
  applied_sha: branch.appliedSha ?? null,
  last_applied_at: branch.lastAppliedAt ? isoTime(branch.lastAppliedAt) : null,
  last_checked_at: branch.lastCheckedAt ? isoTime(branch.lastCheckedAt) : null,
  last_error: branch.lastError
    ? {
        code: branch.lastError.code,
        message: branch.lastError.message,
        diagnostics: branch.lastError.diagnostics.map(diagnosticRecord),
      }
    : null,
  created_at: isoTime(branch.createdAt!),
  updated_at: isoTime(branch.updatedAt!),
  deleted_at: branch.deletedAt && isoTime(branch.deletedAt),
});
