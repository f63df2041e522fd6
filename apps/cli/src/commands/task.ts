import { table } from "@millwright/terminal";
import { CHOICES } from "../choices.ts";
import { textOption, type Command } from "../command.ts";
import { teamOf } from "./access.ts";
import { FACTORY, factoryUid } from "../which-factory.ts";

type Task = { uid: string; title: string; stage: string; created_at: string };

/** Tasks of a factory. */
export const taskCommands: Command[] = [
  {
    words: "task list",
    args: [],
    options: { ...FACTORY, stage: { type: "string", choices: CHOICES.stages } },
    summary: "List a factory's tasks, newest first.",
    run: async (cli, _args, values) => {
      const { tasks } = await cli.api().get<{ tasks: Task[] }>(`/factory/${await factoryUid(cli, values)}/tasks`, {
        stage: textOption(values, "stage"),
      });
      cli.show(tasks, () =>
        table(
          ["TASK", "STAGE", "CREATED", "TITLE"],
          tasks.map((task) => [task.uid, task.stage, task.created_at, task.title]),
        ),
      );
    },
  },
  {
    words: "task review",
    args: [],
    summary: "List the tasks in review of all factories of the team, most recently changed first.",
    run: async (cli, _args, values) => {
      const { tasks } = await cli
        .api()
        .get<{ tasks: (Task & { updated_at: string })[] }>(
          `/team/${await teamOf(cli, textOption(values, "team"))}/tasks`,
          { stage: "REVIEW" },
        );
      cli.show(tasks, () =>
        table(
          ["TASK", "CHANGED", "TITLE"],
          tasks.map((task) => [task.uid, task.updated_at, task.title]),
        ),
      );
    },
  },
  {
    words: "task get",
    args: ["TASK"],
    options: FACTORY,
    summary: "Show a task with its outputs.",
    run: async (cli, [uid], values) => {
      const task = await cli
        .api()
        .get<Task & { outputs: { artifact_type: string; data: Record<string, string> }[] }>(
          `/factory/${await factoryUid(cli, values)}/tasks/${uid}`,
        );
      cli.show(task, () =>
        [
          `${task.title}  [${task.stage}]`,
          ...task.outputs.map(
            (artifact) =>
              `  ${artifact.artifact_type}  ${artifact.data["url"] ?? artifact.data["filename"] ?? artifact.data["title"] ?? ""}`,
          ),
        ].join("\n"),
      );
    },
  },
  {
    words: "task create",
    args: ["CONVERSATION", "TITLE"],
    options: { ...FACTORY, stage: { type: "string", choices: CHOICES.stages }, description: { type: "string" } },
    summary: "Bind a new task to a conversation.",
    run: async (cli, [conversation, title], values) => {
      const body = {
        title,
        conversation_id: conversation,
        stage: textOption(values, "stage"),
        description: textOption(values, "description"),
      };
      const task = await cli.api().post<Task>(`/factory/${await factoryUid(cli, values)}/tasks`, body);
      cli.show(task, () => `${task.uid}  ${task.title}  [${task.stage}]`);
    },
  },
  {
    words: "task cancel",
    args: ["TASK"],
    options: FACTORY,
    summary: "Cancel a task with its current run and the run's descendants.",
    run: async (cli, [uid], values) => {
      const task = await cli.api().post<Task>(`/factory/${await factoryUid(cli, values)}/tasks/${uid}/cancel`);
      cli.show(task, () => `${task.title} is cancelled.`);
    },
  },
  {
    words: "task delete",
    args: ["TASK"],
    options: FACTORY,
    summary: "Delete a task; its conversation can be bound to another.",
    run: async (cli, [uid], values) => {
      await cli.api().request("DELETE", `/factory/${await factoryUid(cli, values)}/tasks/${uid}`);
      cli.show({ uid, deleted: true }, () => `${uid} is deleted.`);
    },
  },
  {
    words: "task move",
    args: ["TASK", "STAGE"],
    choices: { STAGE: CHOICES.stages },
    options: FACTORY,
    summary: "Move a task to another stage.",
    run: async (cli, [uid, stage], values) => {
      const task = await cli
        .api()
        .request<Task>("PATCH", `/factory/${await factoryUid(cli, values)}/tasks/${uid}`, { body: { stage } });
      cli.show(task, () => `${task.title} is in ${task.stage}.`);
    },
  },
];
