import { z } from "zod";
import { EXTENSION } from "../../rest/index.ts";

/** Harnesses that a run can name. `oz` is the platform's own harness. */
export const HARNESS_TYPES = ["oz", "claude", "gemini", "codex", "opencode"] as const;

export const HarnessType = z
  .enum(HARNESS_TYPES)
  .meta({ id: "HarnessType", description: "`opencode` extends the published API." });

export const Harness = z.object({
  type: HarnessType.optional(),
  model_id: z.string().optional(),
  reasoning_level: z.string().optional(),
});

const extension = () => z.string().optional().meta(EXTENSION);

/** Names of managed secrets. A run uses only the secret of its harness. */
export const HarnessAuthSecrets = z.object({
  claude_auth_secret_name: z.string().optional(),
  codex_auth_secret_name: z.string().optional(),
  gemini_auth_secret_name: extension(),
  opencode_auth_secret_name: extension(),
});
