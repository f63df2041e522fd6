type Group = { readonly name: string; readonly description: string; readonly paths: RegExp };

/** The groups of the API reference, in display order. A path belongs to the first group whose pattern matches it. */
const GROUPS: readonly Group[] = [
  {
    name: "Runs",
    description: "Start agents, see what they do, talk to them, stop them.",
    paths: /^\/agent\/runs?(\/|$)/,
  },
  {
    name: "Conversations",
    description: "What agents were told and did, across the runs that continue each other.",
    paths: /^\/agent\/conversations(\/|$)/,
  },
  { name: "Artifacts", description: "What runs leave behind.", paths: /^\/agent\/artifacts(\/|$)/ },
  {
    name: "Schedules",
    description: "Runs that start at set times, and what became of each of those times.",
    paths: /^\/agent\/schedules(\/|$)/,
  },
  {
    name: "Environments",
    description: "Repositories, image and setup commands that runs are given.",
    paths: /^\/agent\/environments(\/|$)/,
  },
  {
    name: "Agent identities",
    description: "The agents of a team: who runs act as.",
    paths: /^\/agent\/identities(\/|$)/,
  },
  { name: "Agents", description: "Models, workers and whatever else runs use.", paths: /^\/agent(\/|$)/ },
  { name: "Factory tasks", description: "Tracked work of a factory.", paths: /^\/factory\/\{\w+\}\/task/ },
  {
    name: "Factory definitions",
    description: "Factories as code: validate, plan, apply.",
    paths: /^\/factory\/\{\w+\}\/source(\/|$)/,
  },
  {
    name: "Tracked branches",
    description: "Branches of a definition's repository: how fresh what serves is, and applying them.",
    paths: /^\/factory\/\{\w+\}\/branches(\/|$)/,
  },
  {
    name: "Automations",
    description: "Work of a factory that starts by itself, and why it did or did not.",
    paths: /^\/factory\/\{\w+\}\/(automations|decisions)(\/|$)/,
  },
  {
    name: "Webhooks",
    description: "Addresses of a factory to which outside systems POST, and the log of what they sent.",
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
    description: "What a factory produces and what it costs: runs, pull requests, autonomy, latency, dollars.",
    paths: /^\/factory\/\{\w+\}\/(metrics|costs|pull-requests)(\/|$)/,
  },
  {
    name: "Factories",
    description: "Agents, repositories and tasks under one name, and the door through which work enters.",
    paths: /^\/factory(\/|$)/,
  },
  {
    name: "Teams",
    description: "Members, invitations, keys, secrets, code hosts, audit log.",
    paths: /^\/(team|invitations)(\/|$)/,
  },
  { name: "Networking", description: "Where the platform's requests come from.", paths: /^\/networking(\/|$)/ },
  { name: "Platform", description: "The caller, prices, and this document.", paths: /^\// },
];

/** Returns the name of the group that a route's path (below `/api/v1`) belongs to. */
export const groupOf = (path: string): string => GROUPS.find(({ paths }) => paths.test(path))?.name ?? "Platform";

/** Returns the groups that contain at least one of these paths, as `tags` of the OpenAPI document. */
export function groupsOf(paths: readonly string[]): { name: string; description: string }[] {
  const used = new Set(paths.map(groupOf));
  return GROUPS.filter(({ name }) => used.has(name)).map(({ name, description }) => ({ name, description }));
}
