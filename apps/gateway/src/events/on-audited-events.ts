import type { EventsHandler, EventsHandlers } from "@millwright/events";
import { insertAuditEntries } from "../store/audit-store.ts";

/** Events that are relevant for an audit: changes of access, changes of resources, and starts and ends of work. */
const AUDITED: Readonly<Record<Source, Readonly<Record<string, readonly string[]>>>> = {
  gateway: {
    team: ["created", "updated"],
    member: ["added", "updated", "removed"],
    invitation: ["created", "accepted", "deleted"],
    key: ["created", "revoked"],
    session: ["started", "ended"],
    secret: ["changed"],
    agent: ["created", "updated", "deleted"],
  },
  factories: {
    factory: ["created", "updated", "deleted"],
    branch: ["created", "untracked"],
    definition: ["activated"],
    task: ["created", "updated"],
    automation: ["created", "updated", "deleted", "run_requested"],
  },
  orchestrator: { budget: ["created", "updated", "deleted"], run: ["created", "finished"] },
  scheduler: { schedule: ["created", "updated", "deleted"] },
  scoring: {
    scorer: ["created", "updated", "deleted"],
    benchmark_suite: ["created", "updated", "deleted"],
    benchmark_run: ["created", "finished"],
  },
  "webhook-ingress": {
    webhook: ["created", "updated", "deleted"],
    code_host_webhook: ["created", "updated", "deleted"],
  },
};

/** The services whose feeds are audited. */
type Source = "gateway" | "factories" | "orchestrator" | "scheduler" | "scoring" | "webhook-ingress";

/** Returns handlers that insert the audited events of one source into the audit log. */
export function onAuditedEvents(source: Source): EventsHandlers {
  const types = Object.entries(AUDITED[source]).flatMap(([entity, facts]) =>
    facts.map((fact) => `millwright.${entity}.${fact}.v1`),
  );
  const insert: EventsHandler = (sql, events) => insertAuditEntries(sql, source, events);
  return Object.fromEntries(types.map((type) => [type, insert]));
}
