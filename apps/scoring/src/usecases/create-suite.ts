import { actorOf, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { invalidArgument } from "@millwright/errors";
import { idempotentRequest } from "@millwright/idempotency";
import { as, isUuid, newUid } from "@millwright/ids";
import { checkConfigurations, type GivenConfiguration } from "../domain/configuration-rules.ts";
import { checkSuite, checkTask, checkTasks } from "../domain/suite-rules.ts";
import type { SuiteTaskUid, SuiteUid, SuiteWithTasks, TaskContent } from "../domain/suite.ts";
import { suiteCreated } from "../events/suite-events.ts";
import { originOf } from "../events/origin.ts";
import type { CreatedSuite, SuiteStore } from "../store/suite-store.ts";
import type { ScopeDeps } from "./scope.ts";
import { findSuiteAgent, requireTaskReferences, spawnableDescendants, type ReferenceDeps } from "./suite-references.ts";
import { findBenchmarkFactory } from "./suite-scope.ts";

export type CreateSuiteInput = {
  readonly factoryUid: string;
  /** Uid chosen by the client; "" generates one. */
  readonly uid: string;
  readonly name: string;
  readonly description: string | null;
  readonly agentUid: string;
  readonly factoryAgentType: string;
  readonly configurations: readonly GivenConfiguration[];
  readonly tasks: readonly TaskContent[];
  readonly idempotencyKey: string;
};

export type CreateSuiteDeps = ScopeDeps &
  ReferenceDeps & {
    suites: Pick<SuiteStore, "findCreated" | "create">;
    clock: Clock;
  };

/**
 * Creates a suite with its tasks. If the client chooses the uid, a repeated request returns the existing suite.
 *
 * Errors: factory_not_found · not_authorized · suite_invalid · agent_not_found · agent_type_mismatch · run_not_found ·
 * suite_name_taken · suite_exists · idempotency_mismatch.
 */
export async function createSuite(
  deps: CreateSuiteDeps,
  caller: Caller,
  input: CreateSuiteInput,
): Promise<CreatedSuite> {
  const factory = await findBenchmarkFactory(deps, caller, input.factoryUid, "factory.manage");
  const { idempotencyKey, ...body } = input;
  const actor = actorOf(caller);
  const now = deps.clock.now();
  const request = idempotentRequest(actor.uid, "create-suite", idempotencyKey, body);
  const created = request && (await deps.suites.findCreated(request, now));
  if (created) return created;

  if (input.uid !== "" && !isUuid(input.uid))
    throw invalidArgument("suite_invalid", `uid must be a UUID (got ${JSON.stringify(input.uid.slice(0, 100))}).`, {
      field: "uid",
    });
  if (input.factoryAgentType.trim() === "")
    throw invalidArgument("suite_invalid", "factory_agent_type is required and must not be blank.", {
      field: "factory_agent_type",
    });
  const { name, description, agentUid } = checkSuite(input);
  const configurations = checkConfigurations(input.configurations, [], newUid);
  const tasks = input.tasks.map(checkTask);
  checkTasks(tasks);
  const agent = await findSuiteAgent(deps, caller, factory, agentUid, input.factoryAgentType.trim());
  await requireTaskReferences(deps, caller, tasks);

  const suite: SuiteWithTasks = {
    uid: input.uid === "" ? newUid<SuiteUid>() : as<SuiteUid>(input.uid.toLowerCase()),
    factoryUid: factory.uid,
    teamUid: factory.teamUid,
    slug: null,
    name,
    description,
    agentUid,
    configurations,
    factoryAgentType: agent.name,
    version: 1,
    creator: { type: actor.type, uid: actor.uid },
    createdAt: now,
    updatedAt: now,
    tasks: tasks.map((task) => ({ ...task, uid: newUid<SuiteTaskUid>(), id: 0, slug: null })),
  };
  const descendants = await spawnableDescendants(deps, caller, suite);
  return deps.suites.create(suite, descendants, suiteCreated(suite, originOf(caller)), request);
}
