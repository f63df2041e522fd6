import { setTimeout as delay } from "node:timers/promises";
import type { ApiClient } from "@millwright/api-client";
import { describeRunEvent, type Paint, type ProgressLine, type RunEventJson } from "@millwright/terminal";

const MARKS: Record<ProgressLine["mark"], [text: string, colour: keyof Paint]> = {
  start: ["·", "gray"],
  say: ["»", "cyan"],
  work: ["✓", "green"],
  done: ["●", "green"],
  fail: ["✗", "red"],
  wait: ["…", "yellow"],
  note: ["!", "yellow"],
};

type RunRow = { run_id: string; agent_config?: { name?: string }; executor?: { display_name?: string } };

/** Prints the events of a run and of all its descendants as they occur. */
export class LiveView {
  readonly #api: ApiClient;
  readonly #paint: Paint;
  readonly #print: (text: string) => void;
  readonly #watched = new Map<string, Promise<void>>();

  constructor(api: ApiClient, paint: Paint, print: (text: string) => void) {
    this.#api = api;
    this.#paint = paint;
    this.#print = print;
  }

  /** Follows the tree of `runId` until all its runs have ended. */
  async follow(runId: string): Promise<void> {
    this.#watch(runId);
    for (let seen = -1; seen !== this.#watched.size;) {
      seen = this.#watched.size;
      await Promise.all(this.#watched.values());
    }
  }

  #watch(runId: string): void {
    if (!this.#watched.has(runId)) this.#watched.set(runId, this.#stream(runId));
  }

  async #stream(runId: string): Promise<void> {
    const run = await this.#api.get<RunRow>(`/agent/runs/${runId}`);
    const name = run.executor?.display_name ?? run.agent_config?.name ?? runId.slice(0, 8);
    for await (const message of this.#api.events(`/agent/runs/${runId}/events`)) {
      if (message.event === "text_delta") continue; // the complete text is in the event of the step
      const event = JSON.parse(message.data) as RunEventJson;
      const child = spawnedRun(event);
      this.#show(name, event);
      if (child) this.#watch(child);
    }
  }

  #show(name: string, event: RunEventJson): void {
    const line = describeRunEvent(event);
    if (!line) return;
    const [mark, colour] = MARKS[line.mark];
    const time = event.occurred_at.slice(11, 19);
    this.#print(
      `${this.#paint.dim(time)}  ${this.#paint.bold(name.padEnd(12))} ${this.#paint[colour](mark)} ${line.text}`,
    );
    for (const detail of line.detail ?? []) this.#print(`${" ".repeat(26)}${this.#paint.dim(detail)}`);
  }
}

function spawnedRun(event: RunEventJson): string | undefined {
  const { name, output } = (event.payload ?? {}) as { name?: string; output?: { run_id?: string } };
  return event.kind === "tool_end" && name === "spawn_run" ? output?.run_id : undefined;
}

/** Polls until `read` returns a value. Throws an Error after the timeout. */
export async function until<T>(read: () => Promise<T | undefined>, what: string, timeoutMs = 15_000): Promise<T> {
  for (const deadline = Date.now() + timeoutMs; Date.now() < deadline; await delay(100)) {
    const value = await read();
    if (value !== undefined) return value;
  }
  throw new Error(`${what} did not come.`);
}
