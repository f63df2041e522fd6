import { ofFactories, ofOwner, ofPrincipals, ofTeam, through, uuids, type RowsOf } from "./team-scope.ts";

/** Rows of no team: settings of the platform, aggregates over teams that name none, and positions. */
const OF_NO_TEAM = undefined;

type Tables = Readonly<Record<string, RowsOf | typeof OF_NO_TEAM>>;

const runs = through("run_uid", (scope) => `SELECT uid FROM runs WHERE ${ofOwner(scope)}`);
const executions = through(
  "execution_id",
  (scope) => `SELECT x.id FROM executions x JOIN runs ON runs.uid = x.run_uid WHERE ${ofOwner(scope)}`,
);
const scorers = through("scorer_uid", (scope) => `SELECT uid FROM scorers WHERE ${ofTeam(scope)}`);
const trials = through(
  "trial_uid",
  (scope) => `SELECT t.uid FROM trials t JOIN benchmark_runs b ON b.uid = t.benchmark_run_uid WHERE ${ofTeam(scope)}`,
);
const codeHosts = through("code_host_uid", (scope) => `SELECT uid FROM code_hosts WHERE ${ofTeam(scope)}`);
const keysOf: RowsOf = ({ team, users }) => `(team_uid = '${team}' OR user_uid = ANY (${uuids(users)}))`;

/**
 * Every table with the rows that belong to a team, by service. Rows are deleted in this order: those that are found
 * through another table come before it.
 */
export const TEAM_TABLES: Readonly<Record<string, Tables>> = {
  orchestrator: {
    leases: runs,
    execution_directives: executions,
    cost_reservations: runs,
    message_attachments: through(
      "message_uid",
      (scope) => `SELECT m.uid FROM messages m JOIN runs ON runs.uid = m.run_uid WHERE ${ofOwner(scope)}`,
    ),
    messages: runs,
    prepared_attachments: runs,
    waits: runs,
    reported_children: through("parent_run_uid", (scope) => `SELECT uid FROM runs WHERE ${ofOwner(scope)}`),
    pull_requests: runs,
    artifacts: runs,
    snapshots: runs,
    transcripts: runs,
    harness_transcripts: runs,
    usage_rows: runs,
    compute_intervals: runs,
    "stream.run_events": runs,
    run_streams: runs,
    executions: runs,
    run_texts: runs,
    block_snapshots: ofOwner,
    runs: ofOwner,
    lanes: ofOwner,
    capacity: ({ team, factories, agents }) => `uid = ANY (${uuids([team, ...factories, ...agents])})`,
    worker_sessions: ofTeam,
    budget_periods: through("budget_uid", (scope) => `SELECT uid FROM budgets WHERE ${ofTeam(scope)}`),
    budgets: ofTeam,
    environment_grants: (scope) =>
      `(environment_uid IN (SELECT uid FROM environments WHERE ${ofOwner(scope)})
        OR grantee_type = 'team' AND grantee_uid = '${scope.team}'
        OR grantee_type = 'user' AND grantee_uid = ANY (${uuids(scope.users)}))`,
    environments: ofOwner,
    local_pull_request_counters: codeHosts,
    code_hosts: ofTeam,
    skills: ofFactories,
    runners: ofFactories,
    repository_skills: ofOwner,
    active_definitions: ofFactories,
    definition_stages: ofTeam,
    closed_factories: ofFactories,
    idempotency_keys: ofPrincipals,
    model_prices: OF_NO_TEAM,
    reaper_ticks: OF_NO_TEAM,
  },
  factories: {
    decisions: ofFactories,
    trigger_events: ofTeam,
    tasks: ofTeam,
    automations: ofTeam,
    tracked_branches: ofTeam,
    definition_versions: ofFactories,
    definition_sources: ofFactories,
    factories: ofTeam,
    idempotency_keys: ofPrincipals,
  },
  scheduler: {
    slots: through("schedule_uid", (scope) => `SELECT uid FROM schedules WHERE ${ofOwner(scope)}`),
    schedules: ofOwner,
    trigger_schedules: ofTeam,
    idempotency_keys: ofPrincipals,
  },
  scoring: {
    trial_scores: trials,
    trial_attempts: trials,
    trials: through("benchmark_run_uid", (scope) => `SELECT uid FROM benchmark_runs WHERE ${ofTeam(scope)}`),
    benchmark_runs: ofTeam,
    suite_tasks: through("suite_uid", (scope) => `SELECT uid FROM suites WHERE ${ofTeam(scope)}`),
    suites: ofTeam,
    self_improvement_runs: scorers,
    self_improvements: scorers,
    attempts: ofTeam,
    score_counts: scorers,
    scorers: ofTeam,
    finished_runs: ofTeam,
    definition_stages: ofTeam,
    definition_versions: ofFactories,
    idempotency_keys: ofPrincipals,
  },
  metrics: {
    stale_runs: through("run_uid", (scope) => `SELECT run_uid FROM run_facts WHERE ${ofTeam(scope)}`),
    code_host_pauses: through(
      "code_host_uid",
      (scope) => `SELECT code_host_uid FROM polled_repositories WHERE ${ofTeam(scope)}`,
    ),
    ledger_entries: ofTeam,
    run_facts: ofTeam,
    run_days: ofFactories,
    cost_group_days: ofFactories,
    tree_costs: ofFactories,
    credit_grants: ofTeam,
    pull_request_activities: ofTeam,
    pull_request_shares: ofFactories,
    factory_pull_requests: ofTeam,
    produced_pull_requests: ofTeam,
    pull_requests: ofTeam,
    repository_merge_days: ofTeam,
    polled_pull_requests: ofTeam,
    polled_repositories: ofTeam,
    idempotency_keys: ofPrincipals,
    compute_prices: OF_NO_TEAM,
    repricings: OF_NO_TEAM,
    rebuilds: OF_NO_TEAM,
  },
  "webhook-ingress": {
    rate_windows: (scope) =>
      `(receiver_uid IN (SELECT uid FROM webhooks WHERE ${ofTeam(scope)})
        OR receiver_uid IN (SELECT code_host_uid FROM code_host_webhooks WHERE ${ofTeam(scope)}))`,
    deliveries: ofTeam,
    webhooks: ofTeam,
    team_secrets: ofTeam,
    code_host_deliveries: ofTeam,
    code_host_webhooks: ofTeam,
    definition_stages: ofTeam,
    definition_versions: ofFactories,
    idempotency_keys: ofPrincipals,
  },
  gateway: {
    idempotency_keys: ofPrincipals,
    metrics_requests: ofFactories,
    managed_secrets: ofTeam,
    sessions: (scope) =>
      `(user_uid = ANY (${uuids(scope.users)}) OR key_uid IN (SELECT uid FROM api_keys WHERE ${keysOf(scope)}))`,
    sign_in_links: ({ users }) => `user_uid = ANY (${uuids(users)})`,
    provider_identities: ({ users }) => `user_uid = ANY (${uuids(users)})`,
    api_keys: keysOf,
    agents: ofTeam,
    former_agents: ofTeam,
    invitations: ofTeam,
    memberships: ofTeam,
    factory_layers: ofTeam,
    definition_stages: ofTeam,
    audit_log: ofTeam,
    users: ({ users }) => `uid = ANY (${uuids(users)})`,
    teams: ({ team }) => `uid = '${team}'`,
    master_key: OF_NO_TEAM,
  },
};

/** The tables of events and work, which every service has or may have. */
export const STREAM_TABLES: Readonly<Record<string, RowsOf | typeof OF_NO_TEAM>> = {
  "stream.work_items": (scope) => `(${ofTeam(scope)} OR payload ->> 'team_uid' = '${scope.team}')`,
  "stream.dead_lettered_events": ({ team }) => `(event ->> 'teamUid' = '${team}' OR event ->> 'team_uid' = '${team}')`,
  "stream.event_pending": OF_NO_TEAM, // empty before an erasure
  "stream.event_log": ofTeam, // texts are redacted; positions stay gapless
  "stream.event_meta": OF_NO_TEAM,
  "stream.feed_cursors": OF_NO_TEAM,
};
