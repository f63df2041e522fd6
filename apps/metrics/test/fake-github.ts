import { createHash } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { forgeReader } from "@millwright/code-host";
import type { SeededRandom } from "@millwright/testing";
import type { ReadCodeHost } from "./fake-orchestrator.ts";

type Json = Record<string, unknown>;
export type Delivery = { readonly event: string; readonly payload: Json };

const BOT = { login: "millwright[bot]", type: "Bot" };
const PEOPLE = ["ada", "grace", "edsger"].map((login) => ({ login, type: "User" }));
export const REPO = "acme/shop";
const PAGE = 100;

type PullRequest = {
  readonly number: number;
  readonly createdAt: string;
  readonly user: Json;
  title: string;
  state: "open" | "closed";
  draft: boolean;
  updatedAt: string;
  closedAt: string | null;
  mergedAt: string | null;
  additions: number;
  commits: number;
  /** Head of the branch. */
  tip: string;
  readonly reviews: Json[];
  readonly comments: Json[];
  readonly reviewComments: Json[];
  readonly events: Json[];
  readonly pushes: Json[];
};

/** GitHub's REST API over HTTP, and the deliveries that its webhooks would make. */
export class FakeGithub {
  /** `method path status` of every request. */
  readonly requests: string[] = [];
  readonly pulls = new Map<number, PullRequest>();
  /** Requests left of the allowance, and when it is full again. */
  allowance: { remaining: number; resetsAt: Date } | undefined;
  readonly #now: () => Date;
  readonly #server: Server;
  #ids = 1_000;

  constructor(now: () => Date) {
    this.#now = now;
    this.#server = createServer((request, response) => {
      const { status, body, link } = this.#answer(new URL(request.url ?? "/", "http://github.test"));
      const text = JSON.stringify(body ?? {});
      const etag = `"${createHash("sha1").update(text).digest("hex")}"`;
      const isSame = status === 200 && request.headers["if-none-match"] === etag;
      response.setHeader("date", this.#now().toUTCString()).setHeader("content-type", "application/json");
      response.setHeader("etag", etag);
      if (link) response.setHeader("link", link);
      if (this.allowance) {
        response.setHeader("x-ratelimit-limit", "5000").setHeader("x-ratelimit-remaining", this.allowance.remaining);
        response.setHeader("x-ratelimit-reset", Math.ceil(this.allowance.resetsAt.getTime() / 1000));
      }
      this.requests.push(`${request.url?.split("?")[0]} ${isSame ? 304 : status}`);
      response.writeHead(isSame ? 304 : status).end(isSame ? undefined : text);
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  stop(): void {
    this.#server.close().closeAllConnections();
  }

  /** Reads as the orchestrator does, with the shipped reader. */
  readonly read: ReadCodeHost = (request) => {
    const named = request.headRepository || request.repository;
    const [owner = "", repo = ""] = named.split("/");
    const baseUrl = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    const since = request.changedSince;
    return forgeReader({ kind: "github", baseUrl, token: "t0ken", fetch })({
      ...request,
      repository: { owner, repo },
      resource: request.resource as "pull_request",
      changedSince: since && new Date(Number(since.seconds) * 1000),
    });
  };

  /** Opens a pull request. Returns its delivery. */
  open(number: number, user: Json = BOT, draft = false): Delivery {
    const now = this.#time();
    const pull: PullRequest = {
      ...{
        number,
        user,
        draft,
        createdAt: now,
        updatedAt: now,
        closedAt: null,
        mergedAt: null,
        title: `Fix ${number}`,
      },
      ...{ state: "open", additions: 10, commits: 1, tip: `head-${number}-0` },
      ...{ reviews: [], comments: [], reviewComments: [], events: [], pushes: [] },
    };
    pull.pushes.push(this.#push(pull, "0".repeat(40), pull.tip, user, "branch_creation"));
    this.pulls.set(number, pull);
    return this.#pullDelivery("opened", pull, user);
  }

  /** Something that happens to a pull request, with its delivery; undefined: it cannot happen in its state. */
  act(pull: PullRequest, what: string, actor: Json): Delivery | undefined {
    const isOpen = pull.state === "open";
    switch (what) {
      case "push": {
        const before = pull.tip;
        pull.tip = `head-${pull.number}-${pull.pushes.length}`;
        pull.pushes.push(this.#push(pull, before, pull.tip, actor, "push"));
        if (!isOpen) return undefined; // the branch moves on without its pull request
        pull.commits += 1;
        pull.additions += 7;
        this.#touch(pull);
        return this.#pullDelivery("synchronize", pull, actor, { before, after: pull.tip });
      }
      case "close":
      case "merge": {
        if (!isOpen) return undefined;
        pull.state = "closed";
        pull.closedAt = this.#touch(pull);
        if (what === "merge") pull.mergedAt = pull.closedAt;
        if (what === "merge") this.#event(pull, "merged", actor);
        this.#event(pull, "closed", actor);
        return this.#pullDelivery("closed", pull, actor);
      }
      case "reopen":
        if (isOpen || pull.mergedAt) return undefined;
        [pull.state, pull.closedAt] = ["open", null];
        this.#touch(pull);
        this.#event(pull, "reopened", actor);
        return this.#pullDelivery("reopened", pull, actor);
      case "ready":
        if (!isOpen || !pull.draft) return undefined;
        pull.draft = false;
        this.#touch(pull);
        this.#event(pull, "ready_for_review", actor);
        return this.#pullDelivery("ready_for_review", pull, actor);
      case "draft":
        if (!isOpen || pull.draft) return undefined;
        pull.draft = true;
        this.#touch(pull);
        this.#event(pull, "convert_to_draft", actor);
        return this.#pullDelivery("converted_to_draft", pull, actor);
      case "approved":
      case "changes_requested":
      case "commented": {
        const submitted = { id: this.#id(), user: actor, submitted_at: this.#touch(pull) };
        pull.reviews.push({ ...submitted, state: what.toUpperCase() });
        return this.#delivery("pull_request_review", "submitted", pull, actor, {
          review: { ...submitted, state: what },
        });
      }
      case "dismiss": {
        const review = pull.reviews.find(({ state }) => state === "APPROVED" || state === "CHANGES_REQUESTED");
        if (!review) return undefined;
        this.#touch(pull);
        review["state"] = "DISMISSED";
        return this.#delivery("pull_request_review", "dismissed", pull, actor, {
          review: { ...review, state: "dismissed" },
        });
      }
      case "comment": {
        const comment = { id: this.#id(), user: actor, created_at: this.#touch(pull), performed_via_github_app: null };
        pull.comments.push(comment);
        const issue = issueOf(pull);
        return {
          event: "issue_comment",
          payload: { action: "created", issue, comment, repository: REPOSITORY, sender: actor },
        };
      }
      case "review_comment": {
        const comment = { id: this.#id(), user: actor, created_at: this.#touch(pull) };
        pull.reviewComments.push(comment);
        return this.#delivery("pull_request_review_comment", "created", pull, actor, { comment });
      }
      default:
        throw new Error(`Unknown step "${what}".`);
    }
  }

  /** A random step of a random pull request. */
  randomStep(random: SeededRandom): Delivery | undefined {
    const pull = random.pick([...this.pulls.values()]);
    return this.act(pull, random.pick(STEPS), random.chance(0.3) ? BOT : random.pick(PEOPLE));
  }

  #pullDelivery(action: string, pull: PullRequest, sender: Json, more: Json = {}): Delivery {
    return this.#delivery("pull_request", action, pull, sender, more);
  }

  #delivery(event: string, action: string, pull: PullRequest, sender: Json, more: Json): Delivery {
    const payload = { action, pull_request: pullOf(pull), repository: REPOSITORY, sender, ...more };
    return { event, payload: structuredClone(payload) };
  }

  #event(pull: PullRequest, event: string, actor: Json): void {
    pull.events.push({ id: this.#id(), event, actor, created_at: this.#time() });
  }

  #push({ number }: PullRequest, before: string, after: string, actor: Json, type: string): Json {
    const ref = `refs/heads/work-${number}`;
    return { id: this.#id(), ref, before, after, actor, activity_type: type, timestamp: this.#time() };
  }

  #touch(pull: PullRequest): string {
    pull.updatedAt = this.#time();
    return pull.updatedAt;
  }

  #time(): string {
    return this.#now()
      .toISOString()
      .replace(/\.\d+Z$/, "Z");
  }

  #id(): number {
    this.#ids += 1;
    return this.#ids;
  }

  #answer(url: URL): { status: number; body?: unknown; link?: string } {
    if (this.allowance) {
      if (this.#now() >= this.allowance.resetsAt) this.allowance = undefined;
      else if (this.allowance.remaining === 0) return { status: 403 };
      else this.allowance.remaining -= 1;
    }
    const path = url.pathname.replace(`/repos/${REPO}`, "");
    if (path === "/activity") {
      const number = Number(url.searchParams.get("ref")!.replace("refs/heads/work-", ""));
      return this.#page(url, this.pulls.get(number)!.pushes.toReversed());
    }
    if (path === "/issues") {
      const since = new Date(url.searchParams.get("since")!);
      const changed = [...this.pulls.values()].filter(({ updatedAt }) => new Date(updatedAt) >= since);
      const inOrder = changed.toSorted((a, b) => (a.updatedAt < b.updatedAt ? -1 : 1));
      return this.#page(url, [
        { number: 999, title: "An issue", updated_at: "2020-01-01T00:00:00Z" },
        ...inOrder.map(issueOf),
      ]);
    }
    const [, kind, number, list] = /^\/(pulls|issues)\/(\d+)(?:\/(\w+))?$/.exec(path) ?? [];
    const pull = this.pulls.get(Number(number));
    if (!pull) return { status: 404 };
    switch (`${kind} ${list ?? ""}`) {
      case "pulls ":
        return { status: 200, body: pullOf(pull) };
      case "pulls reviews":
        return this.#page(url, pull.reviews);
      case "pulls comments":
        return this.#page(url, pull.reviewComments);
      case "issues comments":
        return this.#page(url, pull.comments);
      case "issues events":
        return this.#page(url, pull.events);
      default:
        return { status: 404 };
    }
  }

  /** GitHub's pages, with a tenth of the asked size so that lists have several. */
  #page(url: URL, items: readonly unknown[]) {
    const size = Number(url.searchParams.get("per_page") ?? PAGE) / 10;
    const page = Number(url.searchParams.get("page") ?? 1);
    const next = new URL(url);
    next.searchParams.set("page", String(page + 1));
    const body = items.slice((page - 1) * size, page * size);
    return { status: 200, body, ...(items.length > page * size && { link: `<${next.href}>; rel="next"` }) };
  }
}

const REPOSITORY = { full_name: REPO };
const STEPS = [
  ...["push", "push", "push", "comment", "comment", "review_comment", "commented", "approved", "changes_requested"],
  ...["dismiss", "close", "reopen", "reopen", "merge", "draft", "ready", "ready"],
];

const pullOf = (pull: PullRequest): Json => ({
  ...{ number: pull.number, title: pull.title, state: pull.state, draft: pull.draft, user: pull.user },
  html_url: `https://github.com/${REPO}/pull/${pull.number}`,
  ...{ created_at: pull.createdAt, updated_at: pull.updatedAt, closed_at: pull.closedAt, merged_at: pull.mergedAt },
  ...{ additions: pull.additions, deletions: 3, changed_files: 2, commits: pull.commits },
  base: { ref: "main", repo: REPOSITORY },
  head: { ref: `work-${pull.number}`, sha: pull.tip, repo: REPOSITORY },
});

const issueOf = (pull: PullRequest): Json => ({
  ...{ number: pull.number, title: pull.title, state: pull.state, draft: pull.draft, user: pull.user },
  html_url: `https://github.com/${REPO}/pull/${pull.number}`,
  ...{ created_at: pull.createdAt, updated_at: pull.updatedAt, closed_at: pull.closedAt },
  pull_request: { html_url: `https://github.com/${REPO}/pull/${pull.number}`, merged_at: pull.mergedAt },
});
