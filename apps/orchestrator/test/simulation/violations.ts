import { TERMINAL_STATES } from "../../src/runs/domain/run.ts";
import type { RawView } from "./view.ts";

/**
 * Returns violations of the rules after everything has ended. Derives the rules from the documentation, independently
 * of the code.
 */
export const violationsOf = (raw: RawView): string[] => [
  ...leftOvers(raw),
  ...raw.runs.flatMap(({ uid }) => [...gaps(raw, uid), ...fates(raw, uid)]),
];

/** Every run must be terminal, and no lease, wait or capacity in use may be left. */
function leftOvers({ runs, executions, waits, capacity }: RawView): string[] {
  return [
    ...runs
      .filter(({ state }) => !(TERMINAL_STATES as readonly string[]).includes(state))
      .map(({ state }) => `a run that is left ${state}`),
    ...executions
      .filter(({ state, lease }) => state !== "ENDED" || lease !== null)
      .map(({ state, lease }) => `an execution that is left ${state} with lease ${lease}`),
    ...waits.map(() => "a wait that was not ended"),
    ...capacity.filter(({ inUse }) => inUse !== 0).map(({ scope, inUse }) => `${scope} with ${inUse} in use`),
  ];
}

const eventsOf = ({ events }: RawView, uid: string) =>
  events.filter(({ runUid }) => runUid === uid).toSorted((a, b) => a.seq - b.seq);

function gaps(raw: RawView, uid: string): string[] {
  const seqs = eventsOf(raw, uid).map(({ seq }) => seq);
  return seqs.every((seq, n) => seq === n + 1) ? [] : [`events ${seqs.join(" ")}`];
}

/**
 * Each accepted follow-up must be delivered once, or be reported undeliverable once because the run had ended, in the
 * order of acceptance.
 */
function fates(raw: RawView, uid: string): string[] {
  const executions = new Map(raw.executions.map((execution) => [execution.id, execution]));
  const counts = (attempt: number, id: number) =>
    attempt === executions.get(id)?.acceptedAttempt || executions.get(id)?.retainedAttempts.includes(attempt);
  const events = eventsOf(raw, uid).filter(
    ({ attempt, executionId }) => attempt === null || counts(attempt, executionId!),
  );
  const named = (kind: string, member: string) =>
    events.filter((event) => event.kind === kind).map(({ payload }) => (payload as Record<string, unknown>)[member]);
  const accepted = named("followup_accepted", "followup_uid");
  const delivered = named("message", "message_uid").filter((followupUid) => accepted.includes(followupUid));
  const undelivered = named("followup_undelivered", "followup_uid");
  const violations = accepted.flatMap((followupUid) => {
    const fate = [
      delivered.filter((deliveredUid) => deliveredUid === followupUid).length,
      undelivered.filter((deliveredUid) => deliveredUid === followupUid).length,
    ].join(":");
    const stored = raw.messages.find((message) => message.uid === followupUid);
    const isStored = stored?.isDelivered === (fate === "1:0") && stored.isUndeliverable === (fate === "0:1");
    return (fate === "1:0" || fate === "0:1") && isStored
      ? []
      : [
          `follow-up ${stored?.text}: delivered:undelivered ${fate}, stored ${stored?.isDelivered}:${stored?.isUndeliverable}`,
        ];
  });
  const inOrder = accepted.filter((followupUid) => delivered.includes(followupUid));
  if (inOrder.some((followupUid, n) => followupUid !== delivered[n]))
    violations.push("follow-ups were delivered out of order");
  if (accepted.length !== raw.messages.filter(({ runUid, kind }) => runUid === uid && kind === "followup").length)
    violations.push("a follow-up was stored without being accepted, or twice");
  let hasEnded = false;
  for (const { kind } of events) {
    if (kind === "followup_accepted") hasEnded = false;
    if (kind === "run_finished") hasEnded = true;
    if (kind === "followup_undelivered" && !hasEnded && !events.some((event) => event.kind === "run_finished"))
      violations.push("a follow-up was given up though its run had not ended");
  }
  return violations;
}
