import type { DenialReason } from "./policy.ts";

/** The maximum number of reported hosts per execution. */
const DENIALS_MAX = 50;
const HOST_CHARACTERS_MAX = 255;

export type Denial = {
  readonly host: string;
  readonly port: number;
  readonly reason: DenialReason | "push_not_allowed";
};

/** Reports each denied host once, up to the maximum. */
export class Denials {
  readonly #report: (payload: { host: string; port: number; reason: string; more?: boolean }) => void;
  readonly #reported = new Set<string>();

  constructor(report: (payload: { host: string; port: number; reason: string; more?: boolean }) => void) {
    this.#report = report;
  }

  /** Adds a denial. `more` marks the last report. */
  add({ host, port, reason }: Denial): void {
    const shown = host.slice(0, HOST_CHARACTERS_MAX);
    const key = `${shown}:${port} ${reason}`;
    if (this.#reported.size >= DENIALS_MAX || this.#reported.has(key)) return;
    this.#reported.add(key);
    this.#report({ host: shown, port, reason, more: this.#reported.size === DENIALS_MAX || undefined });
  }
}
