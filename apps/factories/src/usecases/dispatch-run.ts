import { createHash } from "node:crypto";
import type { Caller } from "@millwright/caller";
import { invalidArgument } from "@millwright/errors";
import { idempotentRequest, type IdempotentRequest } from "@millwright/idempotency";
import { newUid } from "@millwright/ids";
import type { Foreman, NewRun } from "../domain/dispatch.ts";
import type { Factory } from "../domain/factory.ts";
import { mintTicket, parseTicketRef, ticketRef } from "../domain/ticket.ts";
import type { ResponseStore } from "../store/idempotency.ts";
import { findFactory, type ScopeDeps } from "./scope.ts";

export type DispatchRunDeps = ScopeDeps & {
  agents: {
    /** Returns the factory's foreman. Errors: foreman_missing (conflict). */
    findForeman(caller: Caller, factory: Factory): Promise<Foreman>;
  };
  runs: ScopeDeps["runs"] & {
    /** Creates a run whose event marks it as dispatched. Returns the same run for the same key and content. */
    dispatch(caller: Caller, run: NewRun): Promise<{ runUid: string }>;
    /** Returns the automations that caused a root run. */
    chainOf(teamUid: string, rootRunUid: string): Promise<readonly string[]>;
  };
  responses: Pick<ResponseStore, "respondFirst">;
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
 * Sends a prompt to the factory's foreman. The task is created when the run's event is handled
 * (events/on-run-created.ts). The foreman and the ticket are determined before the run is requested, and stored under
 * the client's idempotency key. If the request is repeated after a crash at any point, the orchestrator therefore
 * receives the same request and returns the first run.
 * Errors: factory_not_found · not_authorized · prompt_required · invalid_ticket_ref · foreman_missing (conflict) ·
 * idempotency_mismatch (conflict).
 */
export async function dispatchRun(deps: DispatchRunDeps, caller: Caller, input: DispatchRunInput): Promise<Dispatched> {
  const factory = await findFactory(deps, caller, input.factoryUid, "run.create");
  if (input.prompt.trim() === "") throw invalidArgument("prompt_required", "prompt must not be empty.");
  const given = input.ticketRef === undefined ? undefined : parseTicketRef(input.ticketRef);
  const { idempotencyKey, ...body } = input;
  const request = idempotentRequest(caller.principal.uid, `dispatch-run ${factory.uid}`, idempotencyKey, body);
  const settled = await deps.responses.respondFirst(request, async () => ({
    foreman: await deps.agents.findForeman(caller, factory),
    ticket: given ?? mintTicket(newUid()),
  }));
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
    title: input.title?.trim() || undefined,
    metadata,
    idempotencyKey: request && keyAtOrchestrator(request),
  });
  return { runUid, foremanAgent: settled.foreman.agentName, ticketRef: ticketRef(settled.ticket) };
}

/**
 * Returns a key that differs from the client's own key, because the client may use that key for a run that it creates
 * directly.
 */
const keyAtOrchestrator = ({ operation, key }: IdempotentRequest): string =>
  `dispatch-${createHash("sha256").update(`${operation} ${key}`).digest("base64url")}`;
