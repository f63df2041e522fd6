import type { NewDirective } from "./run-change.ts";
import type { JsonObject } from "./run.ts";

/** Something the worker of an execution must be told; `seq` counts per execution. */
export type Directive = {
  readonly executionId: number;
  readonly seq: number;
  readonly attempt: number;
  readonly kind: NewDirective["kind"];
  readonly payload: JsonObject;
};
