import { z } from "zod";
import { omitUndefined } from "@millwright/json";
import {
  cursor,
  instant,
  PageInfo,
  pageInfo,
  pageLimit,
  pathUid,
  queryFlag,
  queryList,
  route,
  type Route,
} from "../../rest/index.ts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { timeBounds } from "../formats/json-values.ts";
import type { FindProfiles } from "../identity/profiles.ts";
import { factoryParams } from "./factories.ts";
import { taskRecords } from "./task-records.ts";
import { Stage, Task } from "./task-schemas.ts";

export type TaskRoutesDeps = { upstreams: Pick<Upstreams, "tasks" | "conversations">; findProfiles: FindProfiles };

const taskParams = z.object({ uid: pathUid("factory"), task_uid: pathUid("task") });

const includeCurrentRun = queryFlag(
  false,
  "Includes the newest top-level run of the bound conversation, if the caller may view it",
);

/** Returns the routes of tasks, of a factory and of a team. */
export function taskRoutes({ upstreams: { tasks, conversations }, findProfiles }: TaskRoutesDeps): Route[] {
  const { taskWithOutputs, tasksInList } = taskRecords(conversations, findProfiles);
  return [
    route({
      method: "GET",
      path: "/factory/{uid}/tasks",
      summary: "List a factory's tasks",
      verbs: ["factory.view"],
      errors: [403],
      params: factoryParams,
      query: z.object({
        stage: queryList(Stage).optional(),
        created_by: queryList(z.string().min(1))
          .optional()
          .describe("E-mail addresses of team members: returns tasks whose run one of them started"),
        q: z.string().optional(),
        created_after: instant().optional(),
        created_before: instant().optional(),
        updated_after: instant().optional(),
        sort_by: z.enum(["created_at", "updated_at"]).default("created_at"),
        sort_order: z.enum(["asc", "desc"]).default("desc"),
        limit: pageLimit(50),
        cursor: cursor(),
        full_list: queryFlag(false, "Includes the outputs of the bound conversation, and the ticket"),
        include_current_run: includeCurrentRun,
      }),
      response: z.object({ tasks: z.array(Task), page_info: PageInfo }),
      handler: async (input) => {
        const { query, params } = input;
        const page = await tasks.listTasks(
          {
            factoryUid: params.uid,
            stages: query.stage ?? [],
            createdBy: query.created_by ?? [],
            q: query.q ?? "",
            ...timeBounds(query),
            sortBy: query.sort_by,
            sortOrder: query.sort_order,
            pageSize: query.limit,
            pageToken: query.cursor ?? "",
          },
          onBehalf(input),
        );
        const listed = await tasksInList(
          page.tasks,
          { full: query.full_list, currentRun: query.include_current_run },
          input,
        );
        return { tasks: listed, page_info: pageInfo(page.nextPageToken) };
      },
    }),
    route({
      method: "GET",
      path: "/team/{uid}/tasks",
      extension: true,
      summary: "List the tasks of all factories of a team in one stage",
      description: "Most recently changed first. `REVIEW` lists what waits for people.",
      verbs: ["factory.view"],
      errors: [403],
      params: z.object({ uid: pathUid("team") }),
      query: z.object({
        stage: Stage,
        limit: pageLimit(50),
        cursor: cursor(),
        include_current_run: includeCurrentRun,
      }),
      response: z.object({ tasks: z.array(Task), page_info: PageInfo }),
      handler: async (input) => {
        const { query, params } = input;
        const page = await tasks.listTeamTasks(
          { teamUid: params.uid, stage: query.stage, pageSize: query.limit, pageToken: query.cursor ?? "" },
          onBehalf(input),
        );
        const listed = await tasksInList(page.tasks, { full: false, currentRun: query.include_current_run }, input);
        return { tasks: listed, page_info: pageInfo(page.nextPageToken) };
      },
    }),
    route({
      method: "POST",
      path: "/factory/{uid}/tasks",
      summary: "Bind a new task to a conversation",
      description:
        "The conversation's newest run must belong to the factory's team. A conversation has at most one active task across all factories.",
      verbs: ["task.manage"],
      errors: [403, 409],
      idempotent: true,
      params: factoryParams,
      body: z.object({
        title: z.string().trim().min(1),
        conversation_id: z.string().min(1),
        description: z.string().nullable().optional(),
        stage: Stage.optional(),
      }),
      response: Task,
      status: 201,
      handler: async (input) => {
        const { title, conversation_id: conversationUid, description, stage = "" } = input.body;
        const { task } = await tasks.createTask(
          {
            factoryUid: input.params.uid,
            title,
            conversationUid,
            stage,
            idempotencyKey: input.request.idempotency?.key ?? "",
            ...omitUndefined({ description: description || undefined }),
          },
          onBehalf(input),
        );
        return taskWithOutputs(task!, input);
      },
    }),
    route({
      method: "GET",
      path: "/factory/{uid}/tasks/{task_uid}",
      summary: "Read a task with its outputs",
      verbs: ["factory.view"],
      errors: [403],
      params: taskParams,
      response: Task,
      handler: async (input) => {
        const { task } = await tasks.getTask(
          { factoryUid: input.params.uid, taskUid: input.params.task_uid },
          onBehalf(input),
        );
        return taskWithOutputs(task!, input);
      },
    }),
    route({
      method: "PATCH",
      path: "/factory/{uid}/tasks/{task_uid}",
      summary: "Change a task",
      description: "Changes exactly the members that are sent; an empty body changes nothing.",
      verbs: ["task.manage"],
      errors: [403],
      params: taskParams,
      body: z.object({
        title: z.string().trim().min(1).optional(),
        description: z.string().nullable().optional(),
        stage: Stage.optional(),
      }),
      response: Task,
      handler: async (input) => {
        const { params, body } = input;
        const { task } = await tasks.updateTask(
          {
            factoryUid: params.uid,
            task: {
              uid: params.task_uid,
              ...omitUndefined({ title: body.title, stage: body.stage, description: body.description || undefined }),
            },
            updateMask: { paths: Object.keys(body) },
          },
          onBehalf(input),
        );
        return taskWithOutputs(task!, input);
      },
    }),
    route({
      method: "DELETE",
      path: "/factory/{uid}/tasks/{task_uid}",
      summary: "Delete a task",
      description: "The conversation can then be bound to a new task. Runs and artifacts are retained.",
      verbs: ["task.manage"],
      errors: [403],
      status: 204,
      params: taskParams,
      handler: async (input) => {
        await tasks.deleteTask({ factoryUid: input.params.uid, taskUid: input.params.task_uid }, onBehalf(input));
      },
    }),
    route({
      method: "POST",
      path: "/factory/{uid}/tasks/{task_uid}/cancel",
      summary: "Cancel a task with its current run",
      description: "Cancels the current top-level run and all its active descendants, then the task.",
      verbs: ["task.manage"],
      errors: [400, 403, 409, 422],
      idempotent: true,
      storesResponse: true,
      params: taskParams,
      response: Task,
      handler: async (input) => {
        const ref = { factoryUid: input.params.uid, taskUid: input.params.task_uid };
        const { task } = await tasks.cancelTask(
          { ...ref, idempotencyKey: input.request.idempotency?.key ?? "" },
          onBehalf(input),
        );
        return taskWithOutputs(task!, input);
      },
    }),
    route({
      method: "GET",
      path: "/factory/{uid}/task-by-conversation",
      summary: "Find the task bound to a conversation",
      verbs: ["factory.view"],
      errors: [403],
      params: factoryParams,
      query: z.object({ conversation_id: z.string().min(1) }),
      response: Task,
      handler: async (input) => {
        const { task } = await tasks.getTaskByConversation(
          { factoryUid: input.params.uid, conversationUid: input.query.conversation_id },
          onBehalf(input),
        );
        return taskWithOutputs(task!, input);
      },
    }),
    route({
      method: "GET",
      path: "/factory/{uid}/task-by-run",
      summary: "Find the task of a run's tree",
      verbs: ["factory.view"],
      errors: [403],
      params: factoryParams,
      query: z.object({ run_id: z.string().min(1) }),
      response: Task,
      handler: async (input) => {
        const { task } = await tasks.getTaskByRun(
          { factoryUid: input.params.uid, runUid: input.query.run_id },
          onBehalf(input),
        );
        return taskWithOutputs(task!, input);
      },
    }),
  ];
}
