/** What is told of a command, as `POST /agent/runs/{runId}/report` takes it. */
export type Told = { readonly seq: number; readonly at: string } & (
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
/** What is kept while the platform does not answer, in characters. */
const PENDING_MAX = 2_000_000;

/** What a command has written and done, in the order in which the platform is told of it, until it says that it has it. */
export class LocalReport {
  #pending: Told[] = [];
  #seq = 0;
  /** Events up to here have been sent, and are sent again as they were. */
  #sentSeq = 0;
  #pendingSize = 0;
  #leftOut = 0;
  #head = "";
  #tail = "";
  #written = 0;

  /** Nothing more can be told: the end has been. */
  isOver = false;

  get isEmpty(): boolean {
    return this.#pending.length === 0;
  }

  output(stream: Stream, text: string): void {
    this.#keep(text);
    if (this.#pendingSize + text.length > PENDING_MAX) {
      this.#leftOut += text.length;
      return;
    }
    this.#tellWhatIsMissing();
    for (let at = 0; at < text.length; at += TEXT_MAX) this.#add(stream, text.slice(at, at + TEXT_MAX));
  }

  followupReceived(uid: string): void {
    this.#pending.push({ ...this.#next(), kind: "followup_received", followup_id: uid });
  }

  end({ exitCode, signal, interrupted }: Ending): void {
    this.#tellWhatIsMissing();
    const truncated = this.#written > this.#head.length + this.#tail.length;
    const output = truncated ? `${this.#head}\n[…]\n${this.#tail}` : this.#head + this.#tail;
    this.#pending.push({
      ...this.#next(),
      kind: "ended",
      interrupted,
      output,
      truncated,
      ...(exitCode === undefined ? {} : { exit_code: exitCode }),
      ...(signal === undefined ? {} : { signal }),
    });
    this.isOver = true;
  }

  /** What is sent next; the same until it is acknowledged. */
  next(): readonly Told[] {
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

  #tellWhatIsMissing(): void {
    if (this.#leftOut === 0) return;
    const text = `[… ${this.#leftOut} characters left out …]\n`;
    this.#leftOut = 0;
    this.#add("stderr", text);
  }

  /** The beginning and the end of everything. */
  #keep(text: string): void {
    this.#written += text.length;
    const room = Math.max(0, TEXT_MAX - this.#head.length);
    this.#head += text.slice(0, room);
    this.#tail = (this.#tail + text.slice(room)).slice(-TEXT_MAX);
  }
}
