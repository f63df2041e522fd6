import type { Item } from "@millwright/code-host-events";
import type { Automation } from "./automation.ts";
import type { Task } from "./task.ts";

/** A task that is about an item of a code host, and the state of its conversation. */
export type BoundTask = {
  readonly task: Pick<Task, "uid" | "conversationUid">;
  /** Of the conversation's newest run; absent: unknown, or not visible to the team. */
  readonly at?: {
    readonly factoryUid?: string | undefined;
    readonly agentUid?: string | undefined;
    readonly agentName?: string | undefined;
  };
};

/** The task that an event on an item continues, instead of starting a new run. */
export type Continuation = {
  readonly taskUid: string;
  readonly conversationUid: string;
  /** The event is of a build. */
  readonly isForBuild?: true;
};

/**
 * How often per day an automation continues a task because of builds: a continued run may cause the next build.
 * Concurrent decisions may exceed it by a few.
 */
export const BUILDS_PER_DAY_MAX = 10;

/** How often an automation has continued a task for builds. */
export type BuildsOfTask = { readonly automationUid: string; readonly taskUid: string; readonly times: number };

/** Returns why an automation does not continue a task for another build; undefined if it does. */
export function tooManyBuilds(
  continues: Continuation | undefined,
  { uid }: Pick<Automation, "uid">,
  builds: readonly BuildsOfTask[],
): string | undefined {
  const times =
    builds.find(({ automationUid, taskUid }) => automationUid === uid && taskUid === continues?.taskUid)?.times ?? 0;
  if (times < BUILDS_PER_DAY_MAX) return undefined;
  return `It matches, but it has continued task ${continues!.taskUid} for ${times} builds within a day (limit ${BUILDS_PER_DAY_MAX}). Replay the delivery to continue it once more.`;
}

/**
 * Returns the newest task that an automation continues: its conversation must be of the agent that the automation
 * names. Another agent's work is a new run, because a reviewer is not the author.
 */
export function continuationOf(
  bound: readonly BoundTask[],
  { factoryUid, rules }: Pick<Automation, "factoryUid" | "rules">,
  foremanUid: string | undefined,
): Continuation | undefined {
  const found = bound.find(
    ({ at }) =>
      at?.factoryUid === factoryUid &&
      (rules.agent === undefined
        ? at.agentUid !== undefined && at.agentUid === foremanUid
        : at.agentName === rules.agent),
  );
  return found && { taskUid: found.task.uid, conversationUid: found.task.conversationUid };
}

/** The limit of metadata values. */
const VALUE_BYTES_MAX = 256;

/** Returns the metadata that bind a run's task to the item that the event is about. */
export function ticketMetadata(provider: string, item: Item | undefined): Readonly<Record<string, string>> {
  if (!item || !isValue(item.id)) return {};
  return { ticket_source: provider, ticket_id: item.id, ...(isValue(item.url) && { ticket_url: item.url }) };
}

const isValue = (text: string): boolean =>
  Buffer.byteLength(text) <= VALUE_BYTES_MAX && text.isWellFormed() && !/\p{Cc}/u.test(text);
