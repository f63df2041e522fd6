/** Allowed values of the API that commands take; a check compares them with the API reference. */
export const CHOICES = {
  runStates: ["QUEUED", "PENDING", "CLAIMED", "INPROGRESS", "SUCCEEDED", "FAILED", "BLOCKED", "ERROR", "CANCELLED"],
  roles: ["owner", "admin", "member", "viewer"],
  scopes: [
    "factory.view", "factory.manage", "source.apply", "run.view", "run.create", "run.manage", "task.manage", "artifact.manage", "agent.manage",
    "schedule.manage", "webhook.manage", "secret.manage", "team.manage",
  ],
  stages: ["TRIAGE", "SPEC", "IMPLEMENT", "REVIEW", "COMPLETE", "CANCELLED"],
  overlaps: ["allow", "skip", "buffer_one", "cancel_other"],
  slotStates: ["due", "buffered", "fired", "skipped", "missed"],
  benchmarkRunStates: ["pending", "running", "scoring", "completed", "failed", "cancelled"],
  trialStates: ["pending", "running", "succeeded", "failed", "cancelled", "queued"],
  periods: ["day", "week", "month"],
  runDimensions: ["agent_type", "status", "source", "root_vs_subrun", "model", "harness"],
  costDimensions: ["source", "user", "agent", "model"],
  pullRequestStates: ["open", "draft", "merged", "closed"],
  exportFormats: ["ndjson", "csv"],
  skillOrders: ["name", "last_run"],
  codeHosts: ["github", "gitlab", "local"],
  authModes: ["token", "url_token", "signature"],
  signatureSchemes: ["github", "pagerduty", "sentry", "standard_webhooks", "stripe", "vercel", "slack", "linear", "shopify", "gitlab", "generic_hmac_sha256"],
} as const;
