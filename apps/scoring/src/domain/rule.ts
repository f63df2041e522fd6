/** What a rule checks; every given check must hold. Public and stored JSON have the same members. */
export type Check =
  /** A regular expression (RE2-like subset, no back-references) in the final message, the conversation or the diff. */
  | {
      readonly kind: "regex";
      readonly target: "final_message" | "conversation" | "diff";
      readonly pattern: string;
      readonly flags?: string;
      readonly negate?: boolean;
    }
  /** A member of a JSON text: the final message, or a JSON file of the workspace. */
  | {
      readonly kind: "json_path";
      readonly target: "final_message" | "file";
      readonly file?: string;
      readonly path: string;
      readonly equals?: unknown;
      readonly exists?: boolean;
    }
  /** A file of the workspace: whether it exists, and what it contains. */
  | { readonly kind: "file"; readonly path: string; readonly exists?: boolean; readonly contains?: string }
  /** A command in a fresh sandbox on the run's workspace. */
  | {
      readonly kind: "command";
      readonly command: string;
      readonly exit_code?: number;
      readonly timeout_seconds?: number;
    }
  /** A figure of the run. */
  | {
      readonly kind: "metric";
      readonly metric: "cost_usd" | "total_tokens" | "run_time_seconds";
      readonly max?: number;
      readonly min?: number;
    }
  /** The state the run ended in. */
  | { readonly kind: "state"; readonly in: readonly string[] };

/** A deterministic judge: the label to give when all checks hold, and the one to give otherwise. */
export type Rule = { readonly checks: readonly Check[]; readonly pass: string; readonly fail: string };
