import { z } from "zod";
import type { factories as proto, orchestrator } from "@millwright/contracts";
import { TASK_STAGES } from "@millwright/definition";
import { isDomainError } from "@millwright/errors";
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
  timestamp,
  UserProfile,
  type Route,
  type RouteInput,
} from "../../rest/index.ts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { factoryParams } from "./factories.ts";
import { omitUndefined } from "@millwright/json";
import { isoTime, timeBounds } from "../formats/json-values.ts";
import type { FindProfiles } from "../identity/profiles.ts";
import { artifactItem } from "../runs/run-record.ts";
import { ArtifactItem, RunState } from "../runs/run-schemas.ts";

export type TaskRoutesDeps = { upstreams: Pick<Upstreams, "tasks" | "conversations">; findProfiles: FindProfiles };

const CurrentRun = z
  .object({ run_id: z.string(), state: RunState, is_run_type_cancellable: z.boolean() })
  .meta({ id: "TaskCurrentRun" });

const Stage = z.enum(TASK_STAGES).meta({ id: "TaskStage" });

const Task = z
  .object({
    uid: z.string(),
    factory_uid: z.string(),
    conversation_id: z.string(),
    run_id: z.string(),
    title: z.string(),
    description: z.string().nullable(),
    stage: Stage,
    author: UserProfile.optional(),
    created_at: timestamp(),
    updated_at: timestamp(),
    outputs: z.array(ArtifactItem).optional(),
    ticket_source: z.string().optional(),
    ticket_id: z.string().optional(),
    current_run: CurrentRun.optional(),
  })
  .meta({ id: "FactoryTask" });

const taskParams = z.object({ uid: pathUid("factory"), task_uid: pathUid("task") });
type RouteCall = Pick<RouteInput, "request"> & { caller: NonNullable<RouteInput["caller"]> };

/** Returns the routes of a factory's tasks. */
export function taskRoutes({ upstreams: { tasks, conversations }, findProfiles }: TaskRoutesDeps): Route[] {
  /**
   * Returns the record of a task with its author and the outputs of all run trees of its conversation in the team, if
   * the caller may view them.
   */
  const whole = async (task: proto.Task, input: RouteCall) => {
    const { conversationUid, teamUid } = task;
    const described = await conversations
      .describeConversation({ conversationUid, teamUid }, onBehalf(input))
      .catch(unlessHidden);
    const authors = await findProfiles([task.starterUid].filter(Boolean));
    return {
      ...taskRecord(task),
      outputs: (described?.outputs ?? []).map(artifactItem),
      ...omitUndefined({ author: authors.get(task.starterUid) }),
    };
  };
  /**
   * Returns the records of tasks in lists. Reads requested outputs and current runs from the orchestrator with one call
   * for the whole page.
   */
  const listed = async (
    page: readonly proto.Task[],
    include: { full: boolean; currentRun: boolean },
    input: RouteCall,
  ) => {
    const needsConversations = (include.full || include.currentRun) && page.length > 0;
    const [authors, standings] = await Promise.all([
      findProfiles([...new Set(page.map(({ starterUid }) => starterUid).filter(Boolean))]),
      needsConversations
        ? conversations.describeConversations(
            {
              conversationUids: page.map(({ conversationUid }) => conversationUid),
              withOutputs: include.full,
              teamUid: page[0]!.teamUid,
            },
            onBehalf(input),
          )
        : undefined,
    ]);
    const standingOf = new Map(standings?.conversations.map((standing) => [standing.conversationUid, standing]));
    return page.map((task) => {
      const standing = standingOf.get(task.conversationUid);
      return {
        ...taskRecord(task),
        ...omitUndefined({ author: authors.get(task.starterUid) }),
        ...(include.full && {
          outputs: (standing?.outputs ?? []).map(artifactItem),
          ...omitUndefined({ ticket_source: task.ticketSource, ticket_id: task.ticketId }),
        }),
        current_run: include.currentRun && standing && !standing.hidden ? currentRun(standing) : undefined,
      };
    });
  };
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
        include_current_run: queryFlag(
          false,
          "Includes the newest top-level run of the bound conversation, if the caller may view it",
        ),
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
        const tasksShown = await listed(
          page.tasks,
          { full: query.full_list, currentRun: query.include_current_run },
          input,
        );
        return { tasks: tasksShown, page_info: pageInfo(page.nextPageToken) };
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
        return whole(task!, input);
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
        return whole(task!, input);
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
        return whole(task!, input);
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
        return whole(task!, input);
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
        return whole(task!, input);
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
        return whole(task!, input);
      },
    }),
  ];
}

/**
 * Returns undefined for a not_found error, because a task is readable without permission to view its runs. Throws every
 * other error.
 */
function unlessHidden(error: unknown): undefined {
  if (isDomainError(error) && error.kind === "not_found") return undefined;
  throw error;
}

const currentRun = ({
  runUid,
  state,
  isRunTypeCancellable,
}: orchestrator.ConversationStanding): z.input<typeof CurrentRun> => ({
  run_id: runUid,
  state: state as z.input<typeof RunState>,
  is_run_type_cancellable: isRunTypeCancellable,
});

const taskRecord = (task: proto.Task): z.input<typeof Task> => ({
  uid: task.uid,
  factory_uid: task.factoryUid,
  conversation_id: task.conversationUid,
  run_id: task.runUid,
  title: task.title,
  description: task.description ?? null,
  stage: task.stage as z.input<typeof Stage>,
  created_at: isoTime(task.createdAt!),
  updated_at: isoTime(task.updatedAt!),
});
