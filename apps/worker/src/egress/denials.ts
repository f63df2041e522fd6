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
  readonly #tell: (payload: { host: string; port: number; reason: string; more?: boolean }) => void;
  readonly #told = new Set<string>();

  constructor(tell: (payload: { host: string; port: number; reason: string; more?: boolean }) => void) {
    this.#tell = tell;
  }

  /** `more`: this was the last that is told. */
  add({ host, port, reason }: Denial): void {
    const shown = host.slice(0, HOST_CHARACTERS_MAX);
    const key = `${shown}:${port} ${reason}`;
    if (this.#told.size >= DENIALS_MAX || this.#told.has(key)) return;
    this.#told.add(key);
    this.#tell({ host: shown, port, reason, ...(this.#told.size === DENIALS_MAX ? { more: true } : {}) });
  }
}
