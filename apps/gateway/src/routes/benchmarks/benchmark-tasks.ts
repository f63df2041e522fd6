import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { json, pathUid, route, type Route } from "../../rest/index.ts";
import { taskMessage, taskRecord } from "./benchmark-records.ts";
import { NewSuiteTask, SuiteTask, SuiteTaskPatch } from "./benchmark-schemas.ts";
import { SUITE, suiteParams } from "./benchmarks.ts";
import { TEXT_BODY_BYTES_MAX } from "../runs/run-schemas.ts";

const taskParams = suiteParams.extend({ task_uid: pathUid("task") });
const TASK = `${SUITE}/tasks/{task_uid}`;

/** Field-mask paths of members whose public name differs from the name in the contract. */
const MASK_NAMES: Readonly<Record<string, string>> = { source_run_id: "source_run_uid" };

type Params = { factory_uid: string; suite_uid: string; task_uid: string };
const refOf = ({ factory_uid: factoryUid, suite_uid: suiteUid, task_uid: taskUid }: Params) => ({
  factoryUid,
  suiteUid,
  taskUid,
});

/** Returns the routes of tasks of a suite. */
export function benchmarkTaskRoutes({ benchmarks }: Pick<Upstreams, "benchmarks">): Route[] {
  return [
    route({
      method: "POST",
      path: `${SUITE}/tasks`,
      summary: "Add a task to a suite",
      description: "Adding an identical task returns the existing task with 200. The title of another task is a 409.",
      verbs: ["factory.manage"],
      errors: [403, 409],
      idempotent: true,
      status: 201,
      bodyBytesMax: TEXT_BODY_BYTES_MAX,
      params: suiteParams,
      body: NewSuiteTask,
      response: SuiteTask,
      responses: { 200: { description: "The suite already contains this task.", schema: SuiteTask } },
      handler: async (input) => {
        const { factory_uid: factoryUid, suite_uid: suiteUid } = input.params;
        const idempotencyKey = input.request.idempotency?.key ?? "";
        const { task, created } = await benchmarks.addTask(
          { factoryUid, suiteUid, task: taskMessage(input.body), idempotencyKey },
          onBehalf(input),
        );
        return created ? taskRecord(task!) : json(200, taskRecord(task!));
      },
    }),
    route({
      method: "GET",
      path: TASK,
      summary: "Read a task of a suite",
      verbs: ["factory.view"],
      errors: [403],
      params: taskParams,
      response: SuiteTask,
      handler: async (input) => taskRecord((await benchmarks.getTask(refOf(input.params), onBehalf(input))).task!),
    }),
    route({
      method: "PATCH",
      path: TASK,
      summary: "Change a task of a suite",
      description:
        "Changes exactly the members that are sent. title, prompt and success_criteria must not be null or blank; a null source_run_id and empty starting_repo_refs or tags clear the member.",
      verbs: ["factory.manage"],
      errors: [403, 409],
      bodyBytesMax: TEXT_BODY_BYTES_MAX,
      params: taskParams,
      body: SuiteTaskPatch,
      response: SuiteTask,
      handler: async (input) => {
        const { factoryUid, suiteUid, taskUid } = refOf(input.params);
        const paths = Object.keys(input.body).map((name) => MASK_NAMES[name] ?? name);
        const { task } = await benchmarks.updateTask(
          { factoryUid, suiteUid, task: taskMessage(input.body, taskUid), updateMask: { paths } },
          onBehalf(input),
        );
        return taskRecord(task!);
      },
    }),
    route({
      method: "DELETE",
      path: TASK,
      summary: "Delete a task of a suite",
      description: "Existing benchmark runs keep their frozen tasks.",
      verbs: ["factory.manage"],
      errors: [403, 409],
      status: 204,
      params: taskParams,
      handler: async (input) => {
        await benchmarks.deleteTask(refOf(input.params), onBehalf(input));
      },
    }),
  ];
}
