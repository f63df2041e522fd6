import type { RunJson } from "../routes/runs/run-record.ts";
import { page } from "./layout.ts";
import { asText, markup, safeHref, type Markup } from "./markup.ts";

type Json = Record<string, unknown>;
type Step = { messages: Json[]; steps: Step[]; description?: string };
export type RunPageData = {
  readonly run: RunJson;
  readonly timeline: readonly { event_type: string; occurred_at: string }[];
  readonly steps: readonly Step[];
  /** Stable URL of this page. */
  readonly runUrl: string;
  /** `?view=…` of this request, appended to links to the run's own pages only; "" if signed in by cookie. */
  readonly viewQuery: string;
};

/** Returns the page of a run: its state, artifacts, conversation and timeline. */
export function runPage({ run, timeline, steps, runUrl, viewQuery }: RunPageData): string {
  const { agent_config: config, request_usage: usage } = run;
  return page(
    run.title,
    markup`<h1>${run.title}</h1>
<p><span class="state ${run.state}">${run.state}</span>${run.status_message && markup` · ${run.status_message.message}`}
<br><span class="meta">run ${run.run_id} · ${run.executor?.display_name ?? config?.name ?? "agent"} · model ${config?.model_id ?? "default"} · ${run.run_time ?? ""}
${usage?.inference_cost_usd !== undefined && markup` · $${usage.inference_cost_usd.toFixed(6)}`}</span></p>
<h2>Artifacts</h2>
${(run.artifacts ?? []).length === 0 ? markup`<p class="meta">none</p>` : markup`<table>${run.artifacts!.map((artifact) => artifactRow(artifact, runUrl, viewQuery))}</table>`}
<h2>Conversation</h2>${steps.map(stepBlock)}
<h2>Timeline</h2><table>${timeline.map((event) => markup`<tr><td class="meta">${event.occurred_at}</td><td>${event.event_type}</td></tr>`)}</table>`,
  );
}

function artifactRow(
  { artifact_type: type, data }: { artifact_type: string; data: Json },
  runUrl: string,
  viewQuery: string,
): Markup {
  const file = asText(data["artifact_uid"]);
  const url = asText(data["url"]) || (file && `${runUrl}/artifacts/${file}`);
  const isOurs = url.startsWith(`${runUrl}/`);
  const name = asText(data["title"] ?? data["filename"] ?? data["branch"]) || url;
  const link = url ? markup`<a href="${safeHref(isOurs ? url + viewQuery : url)}">${name}</a>` : markup`${name}`;
  return markup`<tr><td class="meta">${type.toLowerCase().replaceAll("_", " ")}</td><td>${link}</td></tr>`;
}

function stepBlock(step: Step): Markup {
  return markup`${step.description !== undefined && markup`<p class="meta">${step.description}</p>`}${step.messages.map(messageBlock)}${step.steps.map((inner) => markup`<div class="nested">${stepBlock(inner)}</div>`)}`;
}

function messageBlock(message: Json): Markup {
  const blocks = (message["content"] as Json[] | undefined) ?? [];
  return markup`<div><span class="role">${asText(message["role"])}</span>${blocks.map(contentBlock)}</div>`;
}

function contentBlock(block: Json): Markup {
  switch (block["type"]) {
    case "text":
      return markup`<div class="message">${asText(block["text"])}</div>`;
    case "action":
      return markup`<pre>${block["name"] === "run_command" ? "" : `${asText(block["name"])} `}${compact(block["input"])}</pre>`;
    case "action_result":
      return markup`<pre>${compact(block["output"])}</pre>`;
    default:
      return markup`<p class="meta">${asText(block["name"])}</p>`;
  }
}

/** Formats a command and its output as in a terminal, and any other value as JSON. */
function compact(value: unknown): string {
  const { command, output, ...rest } = (value ?? {}) as Json;
  if (typeof command === "string") return `$ ${command}`;
  if (typeof output === "string") return output;
  return JSON.stringify(rest);
}
