type Group = { readonly name: string; readonly description: string; readonly paths: RegExp };

/** The groups of the API reference, in display order. A path belongs to the first group whose pattern matches it. */
const GROUPS: readonly Group[] = [
  {
    name: "Runs",
    description: "Start runs of agents, read their progress, send follow-ups, cancel them.",
    paths: /^\/agent\/runs?(\/|$)/,
  },
  {
    name: "Conversations",
    description: "Messages and actions of agents, across the consecutive runs of a conversation.",
    paths: /^\/agent\/conversations(\/|$)/,
  },
  {
    name: "Artifacts",
    description: "Files, screenshots, plans and pull requests that runs produce.",
    paths: /^\/agent\/artifacts(\/|$)/,
  },
  {
    name: "Schedules",
    description: "Runs that start on a cron schedule, and the outcome of each slot.",
    paths: /^\/agent\/schedules(\/|$)/,
  },
  {
    name: "Environments",
    description: "Repositories, image and setup commands of runs.",
    paths: /^\/agent\/environments(\/|$)/,
  },
  {
    name: "Agent identities",
    description: "Agents of a team: the service accounts that runs act as.",
    paths: /^\/agent\/identities(\/|$)/,
  },
  { name: "Agents", description: "Models, workers and other resources of runs.", paths: /^\/agent(\/|$)/ },
  {
    name: "Factory tasks",
    description: "Tracked work of factories.",
    paths: /^\/(factory\/\{\w+\}\/task|team\/\{\w+\}\/tasks$)/,
  },
  {
    name: "Factory definitions",
    description: "Factories as code: validate, plan, apply.",
    paths: /^\/factory\/\{\w+\}\/source(\/|$)/,
  },
  {
    name: "Tracked branches",
    description: "Branches of a definition's repository: their freshness, and applying them.",
    paths: /^\/factory\/\{\w+\}\/branches(\/|$)/,
  },
  {
    name: "Automations",
    description: "Triggers that start runs of a factory, and the decision on each event.",
    paths: /^\/factory\/\{\w+\}\/(automations|decisions)(\/|$)/,
  },
  {
    name: "Webhooks",
    description: "Endpoints of a factory that receive events from external systems, and their delivery logs.",
    paths: /^(\/factory\/(\{\w+\}\/)?webhooks|\/webhooks)(\/|$)/,
  },
  {
    name: "Scorers",
    description: "Judges that evaluate the finished runs of a factory, and their results.",
    paths: /^\/factory\/(\{\w+\}\/scorers|\{\w+\}\/runs\/\{\w+\}\/scorer_dispatch|runs\/\{\w+\}\/scores)(\/|$)/,
  },
  {
    name: "Benchmarks",
    description: "Suites of tasks that measure configurations of an agent, their runs, trials and results.",
    paths: /^\/factory\/\{\w+\}\/benchmarks(\/|$)/,
  },
  {
    name: "Metrics and costs",
    description: "Runs, pull requests, autonomy, latency and costs of a factory.",
    paths: /^\/factory\/\{\w+\}\/(metrics|costs|pull-requests)(\/|$)/,
  },
  {
    name: "Factories",
    description: "Agents, repositories and tasks under one name, and the endpoint that accepts work.",
    paths: /^\/factory(\/|$)/,
  },
  {
    name: "Teams",
    description: "Members, invitations, keys, secrets, code hosts, audit log.",
    paths: /^\/(team|invitations)(\/|$)/,
  },
  { name: "Networking", description: "Networks from which the platform sends requests.", paths: /^\/networking(\/|$)/ },
  {
    name: "Platform",
    description: "The caller's identity, prices, definition-file schemas and this document.",
    paths: /^\//,
  },
];

/** Returns the name of the group that a route's path (below `/api/v1`) belongs to. */
export const groupOf = (path: string): string => GROUPS.find(({ paths }) => paths.test(path))?.name ?? "Platform";

/** Returns the groups that contain at least one of these paths, as `tags` of the OpenAPI document. */
export function groupsOf(paths: readonly string[]): { name: string; description: string }[] {
  const used = new Set(paths.map(groupOf));
  return GROUPS.filter(({ name }) => used.has(name)).map(({ name, description }) => ({ name, description }));
}
