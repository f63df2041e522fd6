/** An event of a command, as `POST /agent/runs/{runId}/report` accepts it. */
export type ReportedEvent = { readonly seq: number; readonly at: string } & (
  | { readonly kind: "output"; readonly stream: Stream; text: string }
  | { readonly kind: "followup_received"; readonly followup_id: string }
  | {
      readonly kind: "ended";
      readonly exit_code?: number;
      readonly signal?: string;
      readonly interrupted: boolean;
      readonly output: string;
      readonly truncated: boolean;
    }
);
export type Stream = "stdout" | "stderr";
export type Ending = { readonly exitCode?: number; readonly signal?: string; readonly interrupted: boolean };

const TEXT_MAX = 32_768;
const AT_ONCE_MAX = 50;
/** Maximum output that is buffered while the platform does not respond, in characters. */
const PENDING_MAX = 2_000_000;

/** Buffers the events of a command, in order, until the platform acknowledges them. */
export class LocalReport {
  #pending: ReportedEvent[] = [];
  #seq = 0;
  /** Events up to this number have been sent and no longer change. */
  #sentSeq = 0;
  #pendingSize = 0;
  #omitted = 0;
  #head = "";
  #tail = "";
  #written = 0;

  /** Whether the end has been recorded; no event follows it. */
  hasEnded = false;

  get isEmpty(): boolean {
    return this.#pending.length === 0;
  }

  output(stream: Stream, text: string): void {
    this.#recordSummary(text);
    if (this.#pendingSize + text.length > PENDING_MAX) {
      this.#omitted += text.length;
      return;
    }
    this.#reportOmittedOutput();
    for (let at = 0; at < text.length; at += TEXT_MAX) this.#add(stream, text.slice(at, at + TEXT_MAX));
  }

  followupReceived(uid: string): void {
    this.#pending.push({ ...this.#next(), kind: "followup_received", followup_id: uid });
  }

  end({ exitCode, signal, interrupted }: Ending): void {
    this.#reportOmittedOutput();
    const truncated = this.#written > this.#head.length + this.#tail.length;
    const output = truncated ? `${this.#head}\n[…]\n${this.#tail}` : this.#head + this.#tail;
    this.#pending.push({
      ...this.#next(),
      kind: "ended",
      interrupted,
      output,
      truncated,
      exit_code: exitCode,
      signal,
    });
    this.hasEnded = true;
  }

  /** Returns the next batch; the same one until it is acknowledged. */
  next(): readonly ReportedEvent[] {
    const events = this.#pending.slice(0, AT_ONCE_MAX);
    this.#sentSeq = Math.max(this.#sentSeq, events.at(-1)?.seq ?? 0);
    return events;
  }

  acknowledged(seq: number): void {
    for (const event of this.#pending)
      if (event.seq <= seq && event.kind === "output") this.#pendingSize -= event.text.length;
    this.#pending = this.#pending.filter((event) => event.seq > seq);
  }

  #next(): { seq: number; at: string } {
    return { seq: ++this.#seq, at: new Date().toISOString() };
  }

  #add(stream: Stream, text: string): void {
    this.#pendingSize += text.length;
    const last = this.#pending.at(-1);
    if (
      last?.kind === "output" &&
      last.stream === stream &&
      last.seq > this.#sentSeq &&
      last.text.length + text.length <= TEXT_MAX
    )
      last.text += text;
    else this.#pending.push({ ...this.#next(), kind: "output", stream, text });
  }

  #reportOmittedOutput(): void {
    if (this.#omitted === 0) return;
    const text = `[… ${this.#omitted} characters left out …]\n`;
    this.#omitted = 0;
    this.#add("stderr", text);
  }

  /** Stores the beginning and the end of the whole output. */
  #recordSummary(text: string): void {
    this.#written += text.length;
    const free = Math.max(0, TEXT_MAX - this.#head.length);
    this.#head += text.slice(0, free);
    this.#tail = (this.#tail + text.slice(free)).slice(-TEXT_MAX);
  }
}
