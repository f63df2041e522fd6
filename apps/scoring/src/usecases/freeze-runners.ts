import { runnerUidOf } from "@millwright/ids";
import type { JsonObject } from "@millwright/json";
import { launchInvalid } from "../domain/launch.ts";
import type { ManifestRunner } from "../domain/manifest.ts";
import type { Configuration } from "../domain/suite.ts";
import type { SuiteAgent } from "./suite-references.ts";

/** A runner of one of the team's factories, with every uid that identifies it. */
export type TeamRunner = { readonly uids: readonly string[]; readonly name: string; readonly content: JsonObject };

export type FrozenRunners = {
  /** Runners that agents and configurations reference, ordered by name. */
  readonly runners: readonly ManifestRunner[];
  /** Name of each configuration's runner; "" selects the agent's own. */
  readonly names: readonly string[];
};

/**
 * Returns the runners that a benchmark run uses, by name and content instead of uid. Errors: launch_invalid (the runner
 * of a configuration does not exist).
 */
export function freezeRunners(
  known: readonly TeamRunner[],
  factoryUid: string,
  agents: readonly SuiteAgent[],
  configurations: readonly Configuration[],
): FrozenRunners {
  const find = (uid: string): TeamRunner | undefined => known.find(({ uids }) => uids.includes(uid.toLowerCase()));
  const chosen = configurations.map(({ runner_uid: uid }) => {
    const runner = uid === "" ? undefined : find(uid);
    if (uid !== "" && !runner)
      throw launchInvalid("configurations", `There is no runner ${JSON.stringify(uid)} in the team's factories.`);
    return runner;
  });
  const ofAgents = agents.flatMap(({ layers }) =>
    layers.flatMap(({ config }) => namedBy(config, factoryUid).map(find)),
  );
  const used = new Map([...ofAgents, ...chosen].flatMap((runner) => (runner ? [[runner.uids[0]!, runner]] : [])));
  const byName = [...used.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return {
    runners: byName.map(({ name, content }) => ({ name, content })),
    names: chosen.map((runner) => runner?.name ?? ""),
  };
}

/** Returns the uid of the runner that a layer references by uid, or by its name in the factory. */
function namedBy(config: JsonObject, factoryUid: string): string[] {
  const { runner_id: uid, runner: name } = config;
  if (typeof uid === "string" && uid !== "") return [uid];
  return typeof name === "string" && name !== "" ? [runnerUidOf(factoryUid, name)] : [];
}
