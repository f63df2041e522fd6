import { z } from "zod";

/** Harnesses that a run can name. `oz` is the platform's own harness. */
export const HARNESS_TYPES = ["oz", "claude", "gemini", "codex", "opencode"] as const;

export const HarnessType = z
  .enum(HARNESS_TYPES)
  .meta({ id: "HarnessType", description: "`opencode` is an extension of ours." });

export const Harness = z.object({
  type: HarnessType.optional(),
  model_id: z.string().optional(),
  reasoning_level: z.string().optional(),
});

const ours = () => z.string().optional().meta({ description: "An extension of ours." });

/** Names of managed secrets. A run uses only the secret of its harness. */
export const HarnessAuthSecrets = z.object({
  claude_auth_secret_name: z.string().optional(),
  codex_auth_secret_name: z.string().optional(),
  gemini_auth_secret_name: ours(),
  opencode_auth_secret_name: ours(),
});
