import type { DefinitionStore, StoredPart } from "../../catalog/store/definition-store.ts";
import { invalidArgument, notFound } from "@millwright/errors";
import type { TeamUid } from "@millwright/ids";
import type { RunnerRef } from "../../catalog/domain/agent-config.ts";
import { isRunner, type IdentifiedRunner } from "../../catalog/domain/definition-part.ts";
import type { Owner } from "../domain/run.ts";

/**
 * Returns the runner that a configuration refers to, of the factory or by its uid among those of the team. Errors:
 * runner_not_found · runner_unsupported (invalid_argument).
 */
export async function findRunner(
  deps: { readonly definitions: Pick<DefinitionStore, "findRunner"> },
  owner: Owner,
  part: StoredPart | undefined,
  ref: RunnerRef | undefined,
): Promise<IdentifiedRunner | undefined> {
  if (ref === undefined) return undefined;
  const own = part?.runners.find((candidate) =>
    "uid" in ref ? isRunner(candidate, ref.uid) : candidate.name === ref.name,
  );
  const runner =
    own ??
    ("uid" in ref && owner.type === "team"
      ? await deps.definitions.findRunner(owner.uid as TeamUid, ref.uid)
      : undefined);
  if (!runner) throw notFound("runner");
  if (runner.os !== "linux")
    throw invalidArgument(
      "runner_unsupported",
      `The runner "${runner.name}" requires ${runner.os}; only linux is supported.`,
    );
  return runner;
}
