import { createRequire } from "node:module";

export type Payload = { readonly action?: string } & Record<string, unknown>;
const published = createRequire(import.meta.url)("@octokit/webhooks-examples") as readonly {
  readonly name: string;
  readonly examples: readonly Payload[];
}[];

/** Every published example payload of GitHub, with the event that its header names. */
export const GITHUB_EXAMPLES = published.flatMap(({ name, examples }) =>
  examples.map((payload) => ({ name, payload })),
);

/** Returns a copy with members replaced, by paths such as `review.state`. */
export function changed<T extends object>(payload: T, changes: Readonly<Record<string, unknown>>): T {
  const copy = structuredClone(payload);
  for (const [path, value] of Object.entries(changes)) {
    const names = path.split(".");
    const last = names.pop()!;
    let target = copy as Record<string, unknown>;
    for (const name of names) target = (target[name] ??= {}) as Record<string, unknown>;
    target[last] = value;
  }
  return copy;
}

/** Returns the first published example of an event and action, with members replaced. */
export function githubExample(name: string, action: string, changes: Readonly<Record<string, unknown>> = {}): Payload {
  const found = GITHUB_EXAMPLES.find((example) => example.name === name && example.payload.action === action);
  if (!found) throw new Error(`There is no example of ${name} ${action}.`);
  return changed(found.payload, changes);
}

const ADMIN = { id: 1, name: "Administrator", username: "root", email: "admin@example.com" };
const PROJECT = {
  id: 5,
  name: "Gitlab Test",
  web_url: "http://example.com/gitlab-org/gitlab-test",
  namespace: "Gitlab Org",
  visibility_level: 10,
  path_with_namespace: "gitlab-org/gitlab-test",
  default_branch: "master",
  http_url: "http://example.com/gitlab-org/gitlab-test.git",
};
const REPOSITORY = {
  name: "Gitlab Test",
  url: "http://example.com/gitlab-org/gitlab-test.git",
  homepage: "http://example.com/gitlab-org/gitlab-test",
};
const LAST_COMMIT = {
  id: "562e173be03b8ff2efb05345d12df18815438a4b",
  message: "Check in this test\n",
  timestamp: "2012-01-03T23:36:29+02:00",
};

const note = (noteableType: string, id: number, subject: Record<string, unknown>) => ({
  object_kind: "note",
  event_type: "note",
  user: ADMIN,
  project_id: 5,
  project: PROJECT,
  repository: REPOSITORY,
  object_attributes: {
    id,
    note: "This needs work.",
    noteable_type: noteableType,
    author_id: 1,
    created_at: "2015-05-17 18:21:36 UTC",
    updated_at: "2015-05-17 18:21:36 UTC",
    project_id: 5,
    system: false,
    action: "create",
    url: `http://example.com/gitlab-org/gitlab-test/merge_requests/1#note_${id}`,
  },
  ...subject,
});

/**
 * GitLab's documented example payloads, without members that no fact is read from. Source: docs.gitlab.com, "Webhook
 * events".
 */
export const GITLAB_EXAMPLES = {
  mergeRequest: {
    object_kind: "merge_request",
    event_type: "merge_request",
    user: ADMIN,
    project: { ...PROJECT, id: 1, path_with_namespace: "gitlabhq/gitlab-test" },
    repository: REPOSITORY,
    object_attributes: {
      id: 99,
      iid: 1,
      target_branch: "master",
      source_branch: "ms-viewport",
      author_id: 51,
      assignee_ids: [6],
      reviewer_ids: [6],
      title: "MS-Viewport",
      created_at: "2013-12-03T17:23:34Z",
      updated_at: "2013-12-03T17:23:34Z",
      last_edited_at: "2013-12-03T17:23:34Z",
      state_id: 1,
      state: "opened",
      work_in_progress: false,
      draft: false,
      first_contribution: true,
      merge_status: "unchecked",
      url: "http://example.com/diaspora/merge_requests/1",
      last_commit: LAST_COMMIT,
      action: "open",
      detailed_merge_status: "mergeable",
    },
    labels: [{ id: 206, title: "API" }],
    changes: {
      draft: { previous: true, current: false },
      updated_at: { previous: "2017-09-15 16:50:55 UTC", current: "2017-09-15 16:52:00 UTC" },
    },
    reviewers: [{ id: 6, name: "User1", username: "user1" }],
  },
  noteOnMergeRequest: note("MergeRequest", 1244, {
    merge_request: {
      id: 7,
      iid: 1,
      target_branch: "markdown",
      source_branch: "master",
      author_id: 8,
      title: "Tempora et eos debitis quae laborum et.",
      created_at: "2015-03-01 20:12:53 UTC",
      updated_at: "2015-03-21 18:27:27 UTC",
      state: "opened",
      merge_status: "cannot_be_merged",
      last_commit: LAST_COMMIT,
      work_in_progress: false,
      draft: false,
    },
  }),
  noteOnCommit: note("Commit", 1243, {
    commit: { id: "cfe32cf61b73a0d5e9f13e774abde7ff789b1660", message: "Add submodule" },
  }),
  noteOnIssue: note("Issue", 1241, {
    issue: { id: 92, iid: 17, title: "test", state: "closed", created_at: "2015-04-12 14:53:17 UTC" },
  }),
  noteOnSnippet: note("Snippet", 1245, { snippet: { id: 53, title: "test", created_at: "2015-04-09 02:40:38 UTC" } }),
  push: {
    object_kind: "push",
    event_name: "push",
    before: "95790bf891e76fee5e1747ab589903a6a1f80f22",
    after: "da1560886d4f094c3e6c9ef40349f7d38b5d27d7",
    ref: "refs/heads/master",
    user_id: 4,
    user_username: "jsmith",
    project_id: 15,
    project: PROJECT,
    commits: [LAST_COMMIT],
    total_commits_count: 1,
  },
  tagPush: {
    object_kind: "tag_push",
    event_name: "tag_push",
    before: "0000000000000000000000000000000000000000",
    after: "82b3d5ae55f7080f1e6022629cdb57bfae7cccc7",
    ref: "refs/tags/v1.0.0",
    user_id: 1,
    project: PROJECT,
    commits: [],
  },
  issue: {
    object_kind: "issue",
    user: ADMIN,
    project: PROJECT,
    object_attributes: { id: 301, iid: 23, title: "New API", state: "opened", action: "open" },
  },
  pipeline: {
    object_kind: "pipeline",
    user: ADMIN,
    project: PROJECT,
    object_attributes: { id: 31, iid: 3, ref: "master", status: "success" },
    merge_request: {
      id: 1,
      iid: 1,
      title: "Test",
      state: "opened",
      url: "http://192.168.64.1:3005/gitlab-org/gitlab-test/merge_requests/1",
    },
  },
} as const;
