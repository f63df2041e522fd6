import { DomainError, invalidArgument } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import type { RunEvent } from "../../runs/domain/run-events.ts";
import type { LeaseRef, WorkerSession } from "../../runs/domain/worker-session.ts";

export type ReadHistoryDeps = {
  findRunOfLease(session: WorkerSession, lease: LeaseRef): Promise<string | undefined>;
  listRunEvents(runUid: string, afterSeq: number, limit: number): Promise<readonly RunEvent[]>;
  /** Returns the newest `limit` earlier runs of a run's conversation that have the same owner, oldest first. */
  earlierRuns(runUid: string, limit: number): Promise<readonly string[]>;
  /** Returns the full texts of messages. An event may contain a truncated text. */
  textsOfMessages(uids: readonly string[]): Promise<ReadonlyMap<string, string>>;
};

export type HistoryRequest = LeaseRef & {
  readonly afterSeq: number;
  readonly wholeConversation: boolean;
  /** The token of the previous page. "" means the beginning. */
  readonly pageToken: string;
};

export type HistoryPage = {
  readonly events: readonly RunEvent[];
  readonly hasMore: boolean;
  readonly nextPageToken: string;
};

const PAGE = 500;
const PAGE_BYTES_MAX = 4 * 1024 * 1024;
const EARLIER_RUNS_MAX = 100;
/** The kinds of events that are returned of earlier runs: messages, steps and summaries. */
const CONVERSATION_KINDS: readonly string[] = [
  "message",
  "model_step",
  "tool_start",
  "tool_end",
  "conversation_summarized",
];

/**
 * Returns a page of the events of an execution's run, oldest first, without those of superseded attempts. A harness
 * resumes from this history. With the whole conversation, messages and steps of earlier runs come first. Messages are
 * not truncated.
 *
 * Errors: lease_lost (conflict) · page_token_invalid.
 */
export async function readHistory(
  deps: ReadHistoryDeps,
  session: WorkerSession,
  request: HistoryRequest,
): Promise<HistoryPage> {
  const runUid = await deps.findRunOfLease(session, request);
  if (runUid === undefined) {
    throw new DomainError({
      kind: "conflict",
      reason: "lease_lost",
      message: "This attempt no longer has the lease of its execution. Stop it.",
    });
  }
  if (!request.wholeConversation) return ownPage(deps, runUid, request.afterSeq);
  const runs = [...(await deps.earlierRuns(runUid, EARLIER_RUNS_MAX)), runUid];
  const [uid = runs[0]!, seq = "0"] = request.pageToken === "" ? [] : request.pageToken.split("/");
  if (!runs.includes(uid) || !/^\d{1,15}$/.test(seq))
    throw invalidArgument(
      "page_token_invalid",
      "page_token does not belong to this history. Omit it to start at the beginning.",
    );
  const { events, hasMore, lastSeq } = await readPage(deps, uid, Number(seq));
  const next = hasMore ? `${uid}/${lastSeq}` : runs[runs.indexOf(uid) + 1];
  const listed = uid === runUid ? events : events.filter(({ kind }) => CONVERSATION_KINDS.includes(kind));
  return { events: listed, hasMore: next !== undefined, nextPageToken: next ?? "" };
}

/**
 * Returns a page of one run. A page is never empty if more events follow: the reader continues from the last seq that
 * it received.
 */
async function ownPage(deps: ReadHistoryDeps, runUid: string, afterSeq: number): Promise<HistoryPage> {
  const { events, hasMore, lastSeq } = await readPage(deps, runUid, afterSeq);
  if (hasMore && events.length === 0) return ownPage(deps, runUid, lastSeq);
  return { events, hasMore, nextPageToken: "" };
}

async function readPage(
  deps: ReadHistoryDeps,
  runUid: string,
  afterSeq: number,
): Promise<{ events: readonly RunEvent[]; hasMore: boolean; lastSeq: number }> {
  const found = await deps.listRunEvents(runUid, afterSeq, PAGE + 1);
  const page = fitting(found.slice(0, PAGE));
  const shown = page.filter(({ isSuperseded }) => !isSuperseded);
  return {
    events: await withWholeMessages(deps, shown),
    hasMore: found.length > page.length,
    lastSeq: page.at(-1)?.seq ?? afterSeq,
  };
}

/** Returns as many events as one response may contain, at least one. */
function fitting(events: readonly RunEvent[]): readonly RunEvent[] {
  let bytes = 0;
  const end = events.findIndex(
    ({ payload }, index) => (bytes += JSON.stringify(payload).length) > PAGE_BYTES_MAX && index > 0,
  );
  return end < 0 ? events : events.slice(0, end);
}

async function withWholeMessages(deps: ReadHistoryDeps, events: readonly RunEvent[]): Promise<readonly RunEvent[]> {
  const uidOf = ({ kind, payload }: RunEvent): string[] => {
    const uid = kind === "message" && payload["truncated"] === true ? payload["message_uid"] : undefined;
    return typeof uid === "string" && isUuid(uid) ? [uid] : [];
  };
  const texts = await deps.textsOfMessages(events.flatMap(uidOf));
  return events.map((event) => {
    const text = uidOf(event).map((uid) => texts.get(uid))[0];
    return text === undefined ? event : { ...event, payload: { ...event.payload, text } };
  });
}
