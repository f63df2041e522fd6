import type { ConnectRouter } from "@connectrpc/connect";
import { factories } from "@millwright/contracts";
import { served } from "@millwright/rpc";
import { applySource, type ApplySourceDeps } from "../usecases/apply-source.ts";
import { checkSource, type CheckSourceDeps } from "../usecases/check-source.ts";
import { cancelTask, type CancelTaskDeps } from "../usecases/cancel-task.ts";
import { createFactory, type CreateFactoryDeps } from "../usecases/create-factory.ts";
import { createTask, type CreateTaskDeps } from "../usecases/create-task.ts";
import { deleteFactory, type DeleteFactoryDeps } from "../usecases/delete-factory.ts";
import { deleteTask, type DeleteTaskDeps } from "../usecases/delete-task.ts";
import { dispatchRun, type DispatchRunDeps } from "../usecases/dispatch-run.ts";
import { getTask, getTaskByConversation, getTaskByRun, type FindTaskDeps } from "../usecases/find-task.ts";
import { getDrift } from "../usecases/get-drift.ts";
import { getSource } from "../usecases/get-source.ts";
import { listFactories, type ListFactoriesDeps } from "../usecases/list-factories.ts";
import { listTasks, type ListTasksDeps } from "../usecases/list-tasks.ts";
import { listTeamTasks, type ListTeamTasksDeps } from "../usecases/list-team-tasks.ts";
import { putSource, type PutSourceDeps } from "../usecases/put-source.ts";
import { findFactory } from "../usecases/scope.ts";
import { updateFactory, type UpdateFactoryDeps } from "../usecases/update-factory.ts";
import { updateTask, type UpdateTaskDeps } from "../usecases/update-task.ts";
import { hasErrors } from "../domain/source.ts";
import { branchRoutes, type BranchRoutesDeps } from "./branch-routes.ts";
import { readMaskedSettings, readNewSettings, toFactoryMessage } from "./factory-messages.ts";
import {
  readSourceSettings,
  toDiagnosticMessage,
  toDriftMessage,
  toPlanMessage,
  toSourceMessage,
} from "./source-messages.ts";
import { readListTasks, readNewTask, readTaskChange, toTaskMessage } from "./task-messages.ts";

export type RoutesDeps = CreateFactoryDeps &
  ListFactoriesDeps &
  UpdateFactoryDeps &
  DeleteFactoryDeps &
  DispatchRunDeps &
  PutSourceDeps &
  CheckSourceDeps &
  ApplySourceDeps &
  BranchRoutesDeps &
  ListTasksDeps &
  ListTeamTasksDeps &
  FindTaskDeps &
  UpdateTaskDeps &
  CreateTaskDeps &
  DeleteTaskDeps &
  CancelTaskDeps;

/** Registers every RPC of factories, sources and tasks with the use case that serves it. */
export function factoryRoutes(router: ConnectRouter, deps: RoutesDeps): void {
  router.service(factories.FactoryService, {
    createFactory: served(async ({ teamUid, factory, idempotencyKey }: factories.CreateFactoryRequest, caller) => {
      const created = await createFactory(deps, caller, {
        teamUid,
        settings: factory ? readNewSettings(factory) : {},
        idempotencyKey,
      });
      return { factory: toFactoryMessage(created) };
    }),
    getFactory: served(async ({ uid }: factories.GetFactoryRequest, caller) => ({
      factory: toFactoryMessage(await findFactory(deps, caller, uid, "factory.view")),
    })),
    listFactories: served(async (request: factories.ListFactoriesRequest, caller) => {
      const page = await listFactories(deps, caller, request);
      return { factories: page.factories.map(toFactoryMessage), nextPageToken: page.nextPageToken };
    }),
    updateFactory: served(async ({ uid, factory, updateMask }: factories.UpdateFactoryRequest, caller) => {
      const given = factory ? readMaskedSettings(factory, updateMask?.paths ?? []) : {};
      return { factory: toFactoryMessage(await updateFactory(deps, caller, uid, given)) };
    }),
    deleteFactory: served(async ({ uid, cancelRuns }: factories.DeleteFactoryRequest, caller) => {
      await deleteFactory(deps, caller, uid, { cancelRuns });
      return {};
    }),
    dispatchRun: served(async (request: factories.DispatchRunRequest, caller) => {
      const { factoryUid, prompt, title, ticketRef, ticketUrl, idempotencyKey } = request;
      return dispatchRun(deps, caller, {
        factoryUid,
        prompt,
        idempotencyKey,
        title,
        ticketRef,
        ticketUrl,
      });
    }),
    getSource: served(async ({ factoryUid }: factories.GetSourceRequest, caller) => {
      const { factory, source } = await getSource(deps, caller, factoryUid);
      return { source: toSourceMessage(factory, source) };
    }),
    putSource: served(async ({ factoryUid, source: given }: factories.PutSourceRequest, caller) => {
      const { factory, source } = await putSource(deps, caller, factoryUid, readSourceSettings(given));
      return { source: toSourceMessage(factory, source) };
    }),
    checkSource: served(async ({ factoryUid, files, plan }: factories.CheckSourceRequest, caller) => {
      const checked = await checkSource(deps, caller, { factoryUid, files, plan });
      return {
        valid: !hasErrors(checked.diagnostics),
        diagnostics: checked.diagnostics.map(toDiagnosticMessage),
        plan: checked.plan.map(toPlanMessage),
        revision: checked.revision,
      };
    }),
    getDrift: served(async ({ factoryUid }: factories.GetDriftRequest, caller) =>
      toDriftMessage(await getDrift(deps, caller, factoryUid)),
    ),
    applySource: served(async ({ factoryUid, repair }: factories.ApplySourceRequest, caller) => {
      const { factory, source, plan } = await applySource(deps, caller, factoryUid, repair);
      return { source: toSourceMessage(factory, source), plan: plan.map(toPlanMessage) };
    }),
  });

  branchRoutes(router, deps);

  router.service(factories.TaskService, {
    listTasks: served(async (request: factories.ListTasksRequest, caller) => {
      const page = await listTasks(deps, caller, readListTasks(request));
      return { tasks: page.tasks.map(toTaskMessage), nextPageToken: page.nextPageToken };
    }),
    listTeamTasks: served(async (request: factories.ListTeamTasksRequest, caller) => {
      const page = await listTeamTasks(deps, caller, request);
      return { tasks: page.tasks.map(toTaskMessage), nextPageToken: page.nextPageToken };
    }),
    getTask: served(async ({ factoryUid, taskUid }: factories.GetTaskRequest, caller) => ({
      task: toTaskMessage(await getTask(deps, caller, factoryUid, taskUid)),
    })),
    createTask: served(async (request: factories.CreateTaskRequest, caller) => ({
      task: toTaskMessage(await createTask(deps, caller, readNewTask(request))),
    })),
    deleteTask: served(async (ref: factories.DeleteTaskRequest, caller) => {
      await deleteTask(deps, caller, ref);
      return {};
    }),
    cancelTask: served(async (ref: factories.CancelTaskRequest, caller) => ({
      task: toTaskMessage(await cancelTask(deps, caller, ref)),
    })),
    updateTask: served(async ({ factoryUid, task, updateMask }: factories.UpdateTaskRequest, caller) => {
      const change = readTaskChange(task, updateMask?.paths ?? []);
      return { task: toTaskMessage(await updateTask(deps, caller, { factoryUid, taskUid: task?.uid ?? "" }, change)) };
    }),
    getTaskByConversation: served(
      async ({ factoryUid, conversationUid }: factories.GetTaskByConversationRequest, caller) => ({
        task: toTaskMessage(await getTaskByConversation(deps, caller, factoryUid, conversationUid)),
      }),
    ),
    getTaskByRun: served(async ({ factoryUid, runUid }: factories.GetTaskByRunRequest, caller) => ({
      task: toTaskMessage(await getTaskByRun(deps, caller, factoryUid, runUid)),
    })),
  });
}
