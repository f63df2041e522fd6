import { createHash } from "node:crypto";
import type { Caller } from "@millwright/caller";
import { invalidArgument } from "@millwright/errors";
import { idempotentRequest, type IdempotentRequest } from "@millwright/idempotency";
import { newUid } from "@millwright/ids";
import type { JsonObject } from "@millwright/json";
import type { Foreman, NewRun } from "../domain/dispatch.ts";
import type { Factory } from "../domain/factory.ts";
import { mintTicket, parseTicketRef, ticketRef, type Ticket } from "../domain/ticket.ts";
import { findFactory, type ScopeDeps } from "./scope.ts";

export type DispatchRunDeps = ScopeDeps & {
  agents: {
    /** Errors: foreman_missing (conflict). */
    findForeman(caller: Caller, factory: Factory): Promise<Foreman>;
  };
  runs: ScopeDeps["runs"] & {
    /** Creates a run that its event marks as dispatched. Answers the same run for the same key and content. */
    dispatch(caller: Caller, run: NewRun): Promise<{ runUid: string }>;
    /** The automations by which a root run came about. */
    chainOf(teamUid: string, rootRunUid: string): Promise<readonly string[]>;
  };
  requests: {
    /** Remembers `answer` for a new request; for a known one gives what was remembered then. Errors: idempotency_mismatch. */
    remember(request: IdempotentRequest, answer: JsonObject): Promise<JsonObject>;
  };
};

export type DispatchRunInput = {
  factoryUid: string;
  prompt: string;
  title?: string;
  ticketRef?: string;
  ticketUrl?: string;
  idempotencyKey: string;
};

export type Dispatched = { runUid: string; foremanAgent: string; ticketRef: string };

/**
 * Sends a prompt to the factory's foreman. The task follows from the run's event (events/on-run-created.ts).
 *
 * Whom the run goes to and what it is about are settled before the run is asked for, and remembered with the client's
 * idempotency key: repeated after a crash at any point, the orchestrator is asked for the same run and answers the first.
 *
 * Errors: factory_not_found · not_authorized · prompt_required · invalid_ticket_ref · foreman_missing (conflict)
 *   · idempotency_mismatch (conflict). Source: fields-factory §3.
 */
export async function dispatchRun(deps: DispatchRunDeps, caller: Caller, input: DispatchRunInput): Promise<Dispatched> {
  const factory = await findFactory(deps, caller, input.factoryUid, "run.create");
  if (input.prompt.trim() === "") throw invalidArgument("prompt_required", "prompt must not be empty.");
  const given = input.ticketRef === undefined ? undefined : parseTicketRef(input.ticketRef);
  const { idempotencyKey, ...body } = input;
  const request = idempotentRequest(caller.principal.uid, `dispatch-run ${factory.uid}`, idempotencyKey, body);
  const settled = await settle(deps, caller, factory, given, request);
  const chain = caller.run ? await deps.runs.chainOf(factory.teamUid, caller.run.rootRunUid) : [];
  const metadata = {
    ticket_source: settled.ticket.source,
    ticket_id: settled.ticket.id,
    ...(input.ticketUrl ? { ticket_url: input.ticketUrl } : {}),
    ...(chain.length > 0 && { automation_chain: chain.join(",") }),
  };
  const { runUid } = await deps.runs.dispatch(caller, {
    factory,
    agentUid: settled.foreman.agentUid,
    prompt: input.prompt,
    ...(input.title?.trim() && { title: input.title.trim() }),
    metadata,
    ...(request && { idempotencyKey: keyAtOrchestrator(request) }),
  });
  return { runUid, foremanAgent: settled.foreman.agentName, ticketRef: ticketRef(settled.ticket) };
}

type Settled = { foreman: Foreman; ticket: Ticket };

async function settle(
  deps: DispatchRunDeps,
  caller: Caller,
  factory: Factory,
  given: Ticket | undefined,
  request: IdempotentRequest | undefined,
): Promise<Settled> {
  const settled: Settled = {
    foreman: await deps.agents.findForeman(caller, factory),
    ticket: given ?? mintTicket(newUid()),
  };
  return request ? ((await deps.requests.remember(request, settled)) as Settled) : settled;
}

/** Runs created directly may carry the same client key: they are other requests. */
const keyAtOrchestrator = ({ operation, key }: IdempotentRequest): string =>
  `dispatch-${createHash("sha256").update(`${operation} ${key}`).digest("base64url")}`;
