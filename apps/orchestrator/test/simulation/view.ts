/**
 * The state on which two worlds must agree after the same operations. Runs, messages and sessions are named by their
 * order.
 */
export type View = {
  readonly runs: readonly {
    readonly state: string;
    readonly status: string | null;
    readonly prompt: string | null;
    readonly executions: readonly string[];
    readonly wait: string | null;
    readonly messages: readonly string[];
    readonly events: readonly string[];
  }[];
  readonly capacity: readonly string[];
};

/** The state of one world, with its own uids. */
export type RawView = {
  readonly runs: readonly {
    readonly uid: string;
    readonly state: string;
    readonly status: string | null;
    readonly prompt: string | null;
  }[];
  readonly executions: readonly {
    readonly id: number;
    readonly runUid: string;
    readonly seq: number;
    readonly state: string;
    readonly attempt: number;
    readonly acceptedAttempt: number;
    readonly retainedAttempts: readonly number[];
    readonly outcome: string | null;
    readonly setupLosses: number;
    readonly runLosses: number;
    readonly lease: string | null;
  }[];
  readonly waits: readonly { readonly runUid: string; readonly policy: string; readonly runUids: readonly string[] }[];
  readonly messages: readonly {
    readonly uid: string;
    readonly runUid: string;
    readonly seq: number;
    readonly kind: string;
    readonly text: string;
    readonly executionId: number | null;
    readonly takenAs: string | null;
    readonly isDelivered: boolean;
    readonly isUndeliverable: boolean;
  }[];
  readonly events: readonly {
    readonly runUid: string;
    readonly seq: number;
    readonly kind: string;
    readonly executionId: number | null;
    readonly attempt: number | null;
    readonly payload: unknown;
  }[];
  readonly capacity: readonly {
    readonly scope: string;
    readonly inUse: number;
    readonly virtualTime: number;
    readonly lastStart: number;
  }[];
};

export function viewOfWorld(raw: RawView): View {
  const runs = raw.runs.toSorted((a, b) => (a.uid < b.uid ? -1 : 1));
  const names = new Map<string, string>(runs.map(({ uid }, n) => [uid, `run${n}`]));
  const executions = new Map(
    raw.executions.map((execution) => [execution.id, `${names.get(execution.runUid)}.${execution.seq}`]),
  );
  for (const { uid, runUid, seq } of raw.messages) names.set(uid, `${names.get(runUid)}#${seq}`);
  const named = (value: unknown): string =>
    JSON.stringify(sorted(value)).replaceAll(
      /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g,
      (uid) => names.get(uid) ?? uid,
    );
  const of = <T extends { readonly runUid: string; readonly seq: number }>(rows: readonly T[], uid: string): T[] =>
    rows.filter(({ runUid }) => runUid === uid).toSorted((a, b) => a.seq - b.seq);
  return {
    runs: runs.map(({ uid, state, status, prompt }) => {
      const wait = raw.waits.find(({ runUid }) => runUid === uid);
      return {
        state,
        prompt,
        status: status === null ? null : named(status),
        executions: of(raw.executions, uid).map(
          (execution) =>
            `${execution.seq} ${execution.state} ${execution.outcome} attempt ${execution.attempt}/${execution.acceptedAttempt}, retained ${execution.retainedAttempts.join()}, losses ${execution.setupLosses}+${execution.runLosses} lease ${execution.lease}`,
        ),
        wait: wait ? `${wait.policy} ${named(wait.runUids)}` : null,
        messages: of(raw.messages, uid).map(
          (message) =>
            `${message.seq} ${message.kind} ${named(message.text)} ${message.takenAs} by ${executions.get(message.executionId ?? 0) ?? "none"} ${message.isDelivered ? "delivered" : ""} ${message.isUndeliverable ? "undeliverable" : ""}`,
        ),
        events: of(raw.events, uid).map(
          (event) =>
            `${event.seq} ${event.kind} ${executions.get(event.executionId ?? 0) ?? ""} ${event.attempt} ${named(event.payload)}`,
        ),
      };
    }),
    capacity: raw.capacity.map(({ scope, ...row }) => `${scope} ${JSON.stringify(sorted(row))}`).toSorted(),
  };
}

/**
 * Returns the value with object members in a fixed order, because PostgreSQL stores JSON objects in an order of its
 * own.
 */
const sorted = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(sorted)
    : value !== null && typeof value === "object"
      ? Object.fromEntries(
          Object.entries(value)
            .toSorted(([a], [b]) => (a < b ? -1 : 1))
            .map(([key, member]) => [key, sorted(member)]),
        )
      : value;
