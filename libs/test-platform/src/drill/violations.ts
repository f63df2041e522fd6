import type { EventFact, MessageFact, RunFacts } from "./facts.ts";
import type { ChildPlan } from "./workload.ts";

const TERMINAL = ["SUCCEEDED", "FAILED", "BLOCKED", "ERROR", "CANCELLED"];
/** Events written when an execution releases its run. */
const RELEASES = ["worker_lost", "run_queued", "run_waiting", "run_finished"];
/** Events written when an attempt ends but its run does not. */
const INTERRUPTIONS = ["worker_lost", "worker_stopped", "attempt_failed"];
/** Events with costs or lasting results; none may follow the end of its execution. */
const EFFECTS = ["usage_recorded", "artifact_created"];

/** Returns violated invariants of a terminal run. The invariants hold regardless of the inflicted faults. */
export const violationsOf = (run: RunFacts): string[] =>
  [...ending(run), ...order(run), ...claims(run), ...staleWrites(run), ...steps(run), ...followUpOutcomes(run)].map(
    (violation) => `run ${run.uid}: ${violation}`,
  );

/** Checks that the run is terminal and has a machine-readable cause. */
function ending({ state, isFinished, errorCode, message, events }: RunFacts): string[] {
  if (!TERMINAL.includes(state)) return [`is left ${state}`];
  const last = events.findLast(({ kind }) => kind === "run_finished")?.payload;
  const violations = isFinished ? [] : [`is ${state} and has no finish time`];
  if (last?.["state"] !== state) return [...violations, `is ${state}, its events have ${last?.["state"]}`];
  const isFailure = state === "FAILED" || state === "ERROR";
  if (isFailure && (!errorCode || last["error_code"] !== errorCode))
    violations.push(`is ${state} without a machine-readable cause: ${errorCode}, ${last["error_code"]}`);
  if (state === "CANCELLED" && !last["cancelled_by"]) violations.push("was cancelled without a caller");
  if (state === "BLOCKED" && !message) violations.push("is blocked without a message");
  return violations;
}

/**
 * Checks that no event is lost or duplicated: sequence numbers have no gaps, and the number of events of the newest
 * attempt equals the number it has sent.
 */
function order({ events, lastSeq, lastClientSeq, executions }: RunFacts): string[] {
  const violations =
    events.every(({ seq }, n) => seq === n + 1) && events.length === lastSeq
      ? []
      : [`has ${events.length} events, the last is ${lastSeq}`];
  if (new Set(events.map(({ uid }) => uid)).size < events.length) violations.push("has two events of one id");
  const newest = executions.findLast(({ accepted }) => accepted > 0);
  const sent = events.filter(
    ({ executionId, attempt }) => attempt !== null && executionId === newest?.id && attempt === newest.accepted,
  ).length;
  if (newest && sent !== lastClientSeq)
    violations.push(`has ${sent} events of its newest attempt, which sent ${lastClientSeq}`);
  return violations;
}

/** Checks that the run has one owner at a time: a claim follows the release of the previous claim. */
function claims({ events }: RunFacts): string[] {
  let isClaimed = false;
  return events.flatMap(({ kind, seq }) => {
    const wasClaimed = isClaimed;
    isClaimed = kind === "run_claimed" || (isClaimed && !RELEASES.includes(kind));
    return kind === "run_claimed" && wasClaimed ? [`is claimed by event ${seq} while it was claimed`] : [];
  });
}

/**
 * Checks that an attempt writes no event after it was lost or after a newer attempt has written one, and that no event
 * with costs follows the end of its execution.
 */
function staleWrites({ events }: RunFacts): string[] {
  const lost = new Set<string>();
  const ended = new Set<number>();
  let newest: readonly [number, number] = [0, 0];
  const violations: string[] = [];
  for (const { seq, kind, executionId, attempt, payload } of events) {
    if (INTERRUPTIONS.includes(kind)) lost.add(`${executionId}/${payload["attempt"]}`);
    if (kind === "run_finished" && executionId !== null) ended.add(executionId);
    if (EFFECTS.includes(kind) && executionId !== null && ended.has(executionId))
      violations.push(`event ${seq}, ${kind}, comes after the end of its execution`);
    if (attempt === null || executionId === null) continue;
    if (lost.has(`${executionId}/${attempt}`))
      violations.push(`event ${seq}, ${kind}, is of attempt ${attempt}, which was lost before`);
    if (executionId < newest[0] || (executionId === newest[0] && attempt < newest[1]))
      violations.push(`event ${seq}, ${kind}, is of ${executionId}/${attempt} and comes after ${newest.join("/")}`);
    newest = [executionId, attempt];
  }
  return violations;
}

const counted = ({ events }: RunFacts): EventFact[] => events.filter(({ isSuperseded }) => !isSuperseded);

/**
 * Checks that no step is taken twice, except a step whose tool ran when its attempt was lost, and that no completed
 * tool call is repeated, except calls that a resumed script lists in `repeats` because their result was lost with the
 * workspace.
 */
function steps(run: RunFacts): string[] {
  const twice = (of: readonly string[]) => [...new Set(of.filter((id, n) => of.indexOf(id) !== n))];
  const of = (kind: string) => counted(run).filter((event) => event.kind === kind);
  const stepIds = of("model_step").map(
    ({ payload, attempt, executionId }) =>
      `${payload["step_id"]}${payload["tool_calls"]?.length > 0 ? ` of ${executionId}/${attempt}` : ""}`,
  );
  const repeated = new Set(of("agent_resumed").flatMap(({ payload }) => (payload["repeats"] ?? []) as string[]));
  const done = of("tool_end")
    .filter(({ payload }) => payload["state"] !== "interrupted")
    .map(({ payload }) => `${payload["call_id"]}`)
    .filter((id) => !repeated.has(id));
  return [...twice(stepIds).map((id) => `takes step ${id} twice`), ...twice(done).map((id) => `ends tool ${id} twice`)];
}

/**
 * Checks that each follow-up is either delivered once or undeliverable with a reason, and that delivered follow-ups
 * arrive in the order of acceptance.
 */
function followUpOutcomes(run: RunFacts): string[] {
  const followups = run.messages.filter(({ kind }) => kind === "followup");
  const uids = (kind: string, member: string) =>
    counted(run)
      .filter((event) => event.kind === kind)
      .map(({ payload }) => payload[member] as string);
  const [delivered, given] = [uids("message", "message_uid"), uids("followup_undelivered", "followup_uid")];
  const outcomeOf = ({ uid, text, isDelivered, isUndeliverable, reason }: MessageFact): string[] => {
    const count = [delivered, given]
      .map((uidsOfKind) => uidsOfKind.filter((candidate) => candidate === uid).length)
      .join(":");
    const isOne =
      (isDelivered && !isUndeliverable && count === "1:0") ||
      (!isDelivered && isUndeliverable && reason !== null && count === "0:1");
    return isOne
      ? []
      : [
          `follow-up ${text} does not have exactly one outcome: delivered ${isDelivered}, undeliverable ${isUndeliverable} (${reason}), events ${count}`,
        ];
  };
  const arrived = delivered.filter((uid) => followups.some((followup) => followup.uid === uid));
  const accepted = followups.filter(({ isDelivered }) => isDelivered).map(({ uid }) => uid);
  const isOrdered = arrived.join() === accepted.join();
  return [...followups.flatMap(outcomeOf), ...(isOrdered ? [] : ["received its follow-ups in another order"])];
}

/**
 * Checks that a run performed what its script contains, each item at most once, and every item if it succeeded.
 * `others` are the runs of its tree.
 */
export function effectViolationsOf(
  run: RunFacts,
  plan: ChildPlan & { readonly pullRequests?: number },
  others: readonly RunFacts[],
): string[] {
  const { pullRequests = 0 } = plan;
  const hasAll = run.state === "SUCCEEDED";
  const violations: string[] = [];
  const texts = counted(run)
    .filter(({ kind, payload }) => kind === "model_step" && plan.texts.includes(payload["text"]))
    .map(({ payload }) => payload["text"] as string);
  if (texts.join() !== plan.texts.slice(0, hasAll ? plan.texts.length : texts.length).join())
    violations.push(`emitted ${texts.join(" ")}`);
  for (const file of plan.files) once(`artifact ${file}`, run.artifacts.filter(({ name }) => name === file).length, 1);
  once("pull request", run.pullRequests, pullRequests);
  once("artifact of a pull request", run.artifacts.filter(({ type }) => type === "PULL_REQUEST").length, pullRequests);
  const children = others.filter(({ parentUid }) => parentUid === run.uid);
  for (const child of plan.children)
    once(`child ${child.name}`, children.filter((found) => isOf(found, child)).length, 1);
  if (children.length > plan.children.length) violations.push(`has ${children.length} children`);
  const below = plan.children.flatMap((child) =>
    children.filter((found) => isOf(found, child)).flatMap((found) => effectViolationsOf(found, child, others)),
  );
  return [...violations.map((violation) => `run ${run.uid} (${plan.name}, ${run.state}): ${violation}`), ...below];

  function once(what: string, count: number, wanted: number): void {
    if (count > wanted || (hasAll && count < wanted)) violations.push(`${what}: ${count}, not ${wanted}`);
  }
}

/** Returns whether the run was started with the script of this plan. */
export const isOf = ({ prompt }: Pick<RunFacts, "prompt">, { texts }: Pick<ChildPlan, "texts">): boolean =>
  prompt
    .split("\n")
    .find((line) => line.includes("- say: "))
    ?.endsWith(`say: ${texts[0]}`) ?? false;

/** Returns the `reason` of the run's end, or "". */
export const reasonOf = ({ events }: Pick<RunFacts, "events">): string =>
  (events.findLast(({ kind }) => kind === "run_finished")?.payload["reason"] as string | undefined) ?? "";

/** Returns whether the platform gave the run up for an allowed reason: too many lost attempts, or a limit. */
export function isGivenUp({ state, errorCode, events }: RunFacts): boolean {
  const reason = reasonOf({ events });
  if (/_limit$/.test(reason)) return true;
  const losses = events.filter(({ kind }) => kind === "worker_lost" || kind === "attempt_failed");
  return (
    state === "ERROR" &&
    errorCode === "resource_unavailable" &&
    (reason === "worker_lost" || reason === "sandbox_start_failed") &&
    losses.length > 2
  );
}
