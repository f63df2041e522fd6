/**
 * Names of the managed secrets that determine which model providers a team has configured. The gateway returns those
 * that exist with an agent, and the orchestrator derives the team's models from them.
 */
export const MODEL_SECRETS = [
  "ANTHROPIC_API_KEY",
  "OPENAI_API_KEY",
  "GOOGLE_API_KEY",
  "OPENAI_COMPATIBLE_BASE_URL",
] as const;
