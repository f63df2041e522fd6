const NAMES: Readonly<Record<string, string>> = {
  API: "Console or API",
  CLI: "CLI",
  ORCHESTRATION: "Another run",
  SCHEDULED_AGENT: "Schedule",
  CUSTOM_WEBHOOK: "Webhook",
  GITHUB_WEBHOOK: "GitHub webhook",
  GITLAB_WEBHOOK: "GitLab webhook",
  AZURE_DEVOPS_WEBHOOK: "Azure DevOps webhook",
  GITHUB_ACTION: "GitHub action",
};

/** Returns a name of the API as words: "Self improvement" for "SELF_IMPROVEMENT". */
export const sentenceCase = (value: string): string =>
  value.charAt(0).toUpperCase() + value.slice(1).toLowerCase().replaceAll("_", " ");

/** Returns what created a run, in words. */
export const sourceText = (source: string): string => NAMES[source] ?? sentenceCase(source);

/** Returns the harness of an agent, in words: "oz" is the one of the platform. */
export const harnessText = (harness: string): string => (harness === "oz" ? "Built-in" : harness);
