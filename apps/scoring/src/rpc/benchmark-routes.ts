import type { ConnectRouter } from "@connectrpc/connect";
import { scoring } from "@millwright/contracts";
import { served } from "@millwright/rpc";
import { deleteSuite, updateSuite } from "../usecases/change-suite.ts";
import { composeTask, type ComposeTaskDeps } from "../usecases/compose-task.ts";
import { createSuite, type CreateSuiteDeps } from "../usecases/create-suite.ts";
import { getSuite, listSuites, type GetSuiteDeps, type ListSuitesDeps } from "../usecases/list-suites.ts";
import { addTask, deleteTask, getTask, updateTask, type AddTaskDeps } from "../usecases/suite-tasks.ts";
import { benchmarkResultRoutes, type BenchmarkResultRoutesDeps } from "./benchmark-result-routes.ts";
import { benchmarkRunRoutes, type BenchmarkRunRoutesDeps } from "./benchmark-run-routes.ts";
import {
  readNewSuite,
  readSuitePatch,
  readTask,
  readTaskPatch,
  required,
  toFullSuiteMessage,
  toSuiteMessage,
  toTaskContentMessage,
  toTaskMessage,
} from "./suite-messages.ts";

export type BenchmarkRoutesDeps = CreateSuiteDeps &
  ListSuitesDeps &
  GetSuiteDeps &
  AddTaskDeps &
  ComposeTaskDeps &
  BenchmarkRunRoutesDeps &
  BenchmarkResultRoutesDeps;

/** Registers BenchmarkService: benchmark suites, benchmark runs and trials. */
export function benchmarkRoutes(router: ConnectRouter, deps: BenchmarkRoutesDeps): void {
  router.service(scoring.BenchmarkService, {
    createSuite: served(async (request: scoring.CreateSuiteRequest, caller) => {
      const { suite, descendants, created } = await createSuite(deps, caller, readNewSuite(request));
      return { suite: toFullSuiteMessage(suite, descendants), created };
    }),
    listSuites: served(async (request: scoring.ListSuitesRequest, caller) => {
      const { suites, nextPageToken } = await listSuites(deps, caller, request);
      return { suites: suites.map(toSuiteMessage), nextPageToken };
    }),
    getSuite: served(async (request: scoring.GetSuiteRequest, caller) => {
      const { suite, descendants } = await getSuite(deps, caller, request);
      return { suite: toFullSuiteMessage(suite, descendants) };
    }),
    updateSuite: served(async (request: scoring.UpdateSuiteRequest, caller) => {
      const { factoryUid, uid: suiteUid } = required(request.suite, "suite");
      const { suite, descendants } = await updateSuite(deps, caller, { factoryUid, suiteUid }, readSuitePatch(request));
      return { suite: toFullSuiteMessage(suite, descendants) };
    }),
    deleteSuite: served(async (request: scoring.DeleteSuiteRequest, caller) => {
      await deleteSuite(deps, caller, request);
      return {};
    }),
    addTask: served(async (request: scoring.AddTaskRequest, caller) => {
      const content = readTask(required(request.task, "task"));
      const { task, created } = await addTask(deps, caller, request, content, request.idempotencyKey);
      return { task: toTaskMessage(task), created };
    }),
    getTask: served(async (request: scoring.GetTaskRequest, caller) => ({
      task: toTaskMessage(await getTask(deps, caller, request)),
    })),
    updateTask: served(async (request: scoring.UpdateTaskRequest, caller) => ({
      task: toTaskMessage(
        await updateTask(
          deps,
          caller,
          { ...request, taskUid: required(request.task, "task").uid },
          readTaskPatch(request),
        ),
      ),
    })),
    deleteTask: served(async (request: scoring.DeleteTaskRequest, caller) => {
      await deleteTask(deps, caller, request);
      return {};
    }),
    composeTask: served(async (request: scoring.ComposeTaskRequest, caller) => ({
      task: toTaskContentMessage(await composeTask(deps, caller, request)),
    })),
    ...benchmarkRunRoutes(deps),
    ...benchmarkResultRoutes(deps),
  });
}
