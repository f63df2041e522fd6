import type { DenialReason } from "./policy.ts";

/** Told of so many in one execution; a run that tries more is counted and no longer told of. */
const DENIALS_MAX = 50;
const HOST_CHARACTERS_MAX = 255;

export type Denial = {
  readonly host: string;
  readonly port: number;
  readonly reason: DenialReason | "push_not_allowed";
};

/** Tells of each refused host once, and of not too many. */
export class Denials {
  readonly #report: (payload: { host: string; port: number; reason: string; more?: boolean }) => void;
  readonly #reported = new Set<string>();

  constructor(report: (payload: { host: string; port: number; reason: string; more?: boolean }) => void) {
    this.#report = report;
  }

  /** `more`: this was the last that is told. */
  add({ host, port, reason }: Denial): void {
    const shown = host.slice(0, HOST_CHARACTERS_MAX);
    const key = `${shown}:${port} ${reason}`;
    if (this.#reported.size >= DENIALS_MAX || this.#reported.has(key)) return;
    this.#reported.add(key);
    this.#report({ host: shown, port, reason, ...(this.#reported.size === DENIALS_MAX ? { more: true } : {}) });
  }
}
