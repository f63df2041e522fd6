/** A condition of a rule. A rule passes if every condition is met. Public and stored JSON have the same members. */
export type Check =
  /** A regular expression (RE2 syntax, no back-references) on the final message, the conversation or the diff. */
  | {
      readonly kind: "regex";
      readonly target: "final_message" | "conversation" | "diff";
      readonly pattern: string;
      readonly flags?: string;
      readonly negate?: boolean;
    }
  /** A member of a JSON text: of the final message, or of a JSON file of the workspace. */
  | {
      readonly kind: "json_path";
      readonly target: "final_message" | "file";
      readonly file?: string;
      readonly path: string;
      readonly equals?: unknown;
      readonly exists?: boolean;
    }
  /** A file of the workspace: whether it exists, and whether it contains a text. */
  | { readonly kind: "file"; readonly path: string; readonly exists?: boolean; readonly contains?: string }
  /** A command, executed in a fresh sandbox on the run's workspace. */
  | {
      readonly kind: "command";
      readonly command: string;
      readonly exit_code?: number;
      readonly timeout_seconds?: number;
    }
  /** A bound on the cost, tokens or duration of the run. */
  | {
      readonly kind: "metric";
      readonly metric: "cost_usd" | "total_tokens" | "run_time_seconds";
      readonly max?: number;
      readonly min?: number;
    }
  /** The final state of the run. */
  | { readonly kind: "state"; readonly in: readonly string[] };

/** A deterministic judge: assigns the label `pass` if all checks are met, otherwise the label `fail`. */
export type Rule = { readonly checks: readonly Check[]; readonly pass: string; readonly fail: string };
