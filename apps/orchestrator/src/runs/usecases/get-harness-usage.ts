import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { harnessUsageOf, type HarnessUsage } from "../domain/harness-usage.ts";
import { meteredTokens, type MeteredTokens, type ModelUsage } from "../../catalog/domain/usage.ts";
import type { RunEvent } from "../domain/run-events.ts";
import { harnessOf, type Run } from "../domain/run.ts";

export type GetHarnessUsageDeps = {
  /** Errors: run_not_found. */
  readonly getVisibleRun: (caller: Caller, uid: string) => Promise<Run>;
  /** Returns the newest event of a kind. */
  readonly findNewestEvent: (runUid: string, kind: "harness_usage") => Promise<RunEvent | undefined>;
  /** Returns the usage that the model gateway has metered, by run. */
  readonly usageOfRuns: (runUids: readonly string[]) => Promise<ReadonlyMap<string, readonly ModelUsage[]>>;
  readonly clock: Pick<Clock, "now">;
};

export type HarnessUsageReport = {
  readonly runUid: string;
  readonly conversationUid: string;
  readonly usage?: HarnessUsage & MeteredTokens & { readonly ageSeconds: number };
};

/**
 * Returns the newest usage counts of a third-party harness, and the usage that the model gateway has metered for the
 * run. Every caller that may see the run may read them. Errors: run_not_found.
 */
export async function getHarnessUsage(
  deps: GetHarnessUsageDeps,
  caller: Caller,
  runUid: string,
): Promise<HarnessUsageReport> {
  const run = await deps.getVisibleRun(caller, runUid);
  const event = harnessOf(run) === "oz" ? undefined : await deps.findNewestEvent(run.uid, "harness_usage");
  const usage = event && harnessUsageOf(event);
  const ageSeconds = usage
    ? Math.max(0, Math.floor((deps.clock.now().getTime() - usage.capturedAt.getTime()) / 1_000))
    : 0;
  return {
    runUid: run.uid,
    conversationUid: run.conversationUid,
    usage: usage ? { ...usage, ...(await metered(deps, run.uid)), ageSeconds } : undefined,
  };
}

const metered = async ({ usageOfRuns }: GetHarnessUsageDeps, runUid: string): Promise<MeteredTokens> =>
  meteredTokens((await usageOfRuns([runUid])).get(runUid) ?? []);
