import type { z } from "zod";
import type { Decision } from "../routes/triggers/automation-schemas.ts";
import { page } from "./layout.ts";
import { markup, type Markup } from "./markup.ts";

export type EventPageData = {
  readonly eventUid: string;
  /** The decisions of automations about the event. */
  readonly decisions: readonly z.input<typeof Decision>[];
  readonly runUrl: (runUid: string) => string;
};

/** Returns the page of an event. Runs that the event started link to it. */
export function eventPage({ eventUid, decisions, runUrl }: EventPageData): string {
  const [first] = decisions;
  const title = first ? `${first.provider}: ${first.event}` : "An event that no automation handled";
  const facts = Object.entries(first?.subject ?? {}).map(
    ([name, value]) =>
      markup`<tr><td>${name}</td><td>${typeof value === "string" ? value : JSON.stringify(value)}</td></tr>`,
  );
  return page(
    title,
    markup`<h1>${title}</h1>
<p><code>${eventUid}</code> <span class="meta">${first?.occurred_at ?? ""}</span></p>
<table>${facts}</table>
<h2>Automations</h2><table>${decisions.map((decision) => decisionRow(decision, runUrl))}</table>`,
  );
}

const decisionRow = (
  { automation, outcome, explanation, run_id: runId }: EventPageData["decisions"][number],
  runUrl: (runUid: string) => string,
): Markup =>
  markup`<tr><td>${automation}</td><td>${outcome}</td><td>${explanation}</td><td>${runId === null ? "" : markup`<a href="${runUrl(runId)}">its run</a>`}</td></tr>`;
