import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { DomainError } from "@millwright/errors";
import { seededRandom, type SeededRandom } from "@millwright/testing";
import { deliveryWorld } from "./delivery-world.ts";
import { FakeGithub, REPO, type Delivery } from "./fake-github.ts";
import { CODE_HOST, type ReadCodeHost } from "./fake-orchestrator.ts";
import { startWorld, type World } from "./setup.ts";

let world: World;
let on: ReturnType<typeof deliveryWorld>;
let github: FakeGithub;
let factoryUid: string;

beforeAll(async () => {
  world = await startWorld();
  on = deliveryWorld(world);
});
beforeEach(async () => {
  await world.reset();
  factoryUid = world.aFactory();
  github = new FakeGithub(() => world.clock.now());
  await github.start();
  world.orchestrator.readCodeHost = github.read;
});
afterEach(() => github.stop());
afterAll(() => world.stop());

const PULLS = 24;
const OF_PEOPLE = 6;
const STEPS = 150;
const urlOf = (number: number): string => `https://github.com/${REPO}/pull/${number}`;
const person = { login: "ada", type: "User" };

/** Opens the pull requests at the code host. Returns the deliveries. */
function openPulls(random: SeededRandom): Delivery[] {
  return Array.from({ length: PULLS + OF_PEOPLE }, (_, index) => {
    world.clock.advance(1_000);
    return github.open(index + 1, index < PULLS ? undefined : person, random.chance(0.3));
  });
}

/** Plays random steps at the code host. Returns their deliveries in order. */
function play(random: SeededRandom): Delivery[] {
  return Array.from({ length: STEPS }, () => {
    world.clock.advance(1_000 * (1 + random.below(30)));
    return github.randomStep(random) ?? [];
  }).flat();
}

async function producePulls(): Promise<void> {
  for (let number = 1; number <= PULLS; number += 1) await on.produced(factoryUid, urlOf(number), 0, REPO, number);
}

const deliver = async (deliveries: readonly Delivery[]): Promise<void> => {
  for (const { event, payload } of deliveries) on.github(event, payload, world.clock.now());
  await on.settle();
};

/** Everything from which responses are computed, without the identities of the run and the factory. */
const records = () =>
  world.rows(
    `SELECT f.url_key, title, author_login, state, opened_at, first_human_review_at, merged_at, closed_at, updated_at, additions, deletions,
            changed_files, num_commits, history_complete, human_code_change, human_interactions, human_total
       FROM factory_pull_requests f
      ORDER BY url_key`,
  );
const merges = () =>
  world.rows("SELECT url_key, merged_at FROM pull_requests WHERE merged_at IS NOT NULL ORDER BY url_key");

async function forget(): Promise<void> {
  await world.rows(
    `TRUNCATE pull_requests, pull_request_activities, produced_pull_requests, factory_pull_requests, run_facts, polled_repositories,
              polled_pull_requests`,
  );
}

/** Plays a minute and reads what is due, by two replicas at once. */
async function passMinute(other = world.replica()): Promise<void> {
  world.clock.advance(60_000);
  await Promise.all([world.service.reconcileDue(), other.reconcileDue()]);
}

describe("deliveries of which a tenth is lost, in random order and repeated,", () => {
  test.each([1, 2, Math.floor(Math.random() * 2 ** 31)])(
    "end within ten minutes in the records of all deliveries (seed %d)",
    async (seed) => {
      const random = seededRandom(seed);
      const other = world.replica();
      /** Loses a tenth, repeats some, and shuffles the rest. */
      const deliverMost = (deliveries: readonly Delivery[]): Promise<void> => {
        const sent = deliveries.filter(() => random.chance(0.9));
        return deliver(random.shuffled([...sent, ...sent.filter(() => random.chance(0.3))]));
      };
      const [before, after] = [[...openPulls(random), ...play(random)], [] as Delivery[]];
      await producePulls();
      await deliverMost(before);
      for (let minute = 0; minute < 10; minute += 1) await passMinute(other);
      after.push(...play(random));
      await deliverMost(after);
      const unreconciled = await records();
      for (let minute = 0; minute < 10; minute += 1) await passMinute(other);
      const [reconciled, reconciledMerges] = [await records(), await merges()];
      await other.stop();

      await forget();
      await producePulls();
      await deliver([...before, ...after]);
      const expected = await records();
      expect(expected).toHaveLength(PULLS);
      expect(unreconciled).not.toEqual(expected);
      expect(reconciled).toEqual(expected);
      expect(reconciledMerges).toEqual(await merges());
    },
  );

  test("also if the deliveries arrive after the code host was read", async () => {
    const random = seededRandom(4);
    const all = [...openPulls(random), ...play(random)];
    await producePulls();
    await deliver(all);
    const expected = await records();
    await forget();
    await producePulls();
    await world.service.reconcileDue();
    expect(await records()).toEqual(expected);
    await deliver(random.shuffled(all));
    expect(await records()).toEqual(expected);
  });
});

describe("a pull request of which no delivery came", () => {
  test("is complete after it was read: its opening, its pushes and its reviews are known", async () => {
    github.open(1);
    const pull = github.pulls.get(1)!;
    world.clock.advance(60_000);
    github.act(pull, "push", person);
    github.act(pull, "approved", person);
    world.clock.advance(60_000);
    github.act(pull, "merge", person);
    await on.produced(factoryUid, urlOf(1), 0, REPO, 1);
    await world.service.reconcileDue();
    expect(await on.record(factoryUid)).toMatchObject({
      state: "merged",
      historyComplete: true,
      humanCodeChange: true,
      additions: 17,
      humanInteractions: { opened: 0, codePush: 1, reviewApproved: 1, prAction: 1, total: 3 },
    });
  });

  test.each<[string, ReadCodeHost]>([
    ["do not exist", async (request) => ({ ...(await github.read(request)), outcome: "not_found" })],
    [
      "are forbidden to the token",
      async () => {
        throw new DomainError({ kind: "permission_denied", reason: "code_host_forbidden", message: "No." });
      },
    ],
  ])("is known, but not complete if its pushes %s", async (_, readPushes) => {
    github.open(1);
    world.orchestrator.readCodeHost = (request) => (request.resource === "pushes" ? readPushes : github.read)(request);
    await on.produced(factoryUid, urlOf(1), 0, REPO, 1);
    await world.service.reconcileDue();
    expect(await on.record(factoryUid)).toMatchObject({ state: "open", historyComplete: false, additions: 10 });
  });

  test("keeps what deliveries reported if the list of events is too long to be read", async () => {
    const pull = github.open(1);
    const closing = github.act(github.pulls.get(1)!, "close", { login: "ada", type: "User" })!;
    world.orchestrator.readCodeHost = async (request) =>
      request.resource === "events" ? { ...(await github.read(request)), outcome: "not_found" } : github.read(request);
    await on.produced(factoryUid, urlOf(1), 0, REPO, 1);
    for (const { event, payload } of [pull, closing]) on.github(event, payload);
    await on.settle();
    await world.service.reconcileDue();
    expect(await on.record(factoryUid)).toMatchObject({ state: "closed", humanInteractions: { prAction: 1 } });
  });

  test("at another host is not that of the run", async () => {
    github.open(1);
    await on.produced(factoryUid, "https://github.corp.test/acme/shop/pull/1", 0, REPO, 1);
    await world.service.reconcileDue();
    expect(await world.rows("SELECT FROM pull_requests WHERE url_key LIKE 'github.corp.test/%'")).toEqual([]);
  });
});

test("while nothing changes every read is answered with 304", async () => {
  github.open(1);
  await on.produced(factoryUid, urlOf(1), 0, REPO, 1);
  for (let minute = 0; minute < 20; minute += 1) await passMinute(world.service);
  github.requests.length = 0;
  for (let minute = 0; minute < 60; minute += 1) await passMinute(world.service);
  expect(github.requests.length).toBeGreaterThan(5);
  expect(github.requests.filter((request) => !request.endsWith(" 304"))).toEqual([]);
});

test("more changes of one time than a claim reads are read to the end", async () => {
  await on.produced(factoryUid, urlOf(1), 0, REPO, 1);
  const [bulk, last] = [world.clock.now(), new Date(world.clock.now().getTime() + 30_000)];
  const changes = [...Array.from({ length: 1_200 }, () => bulk), last];
  world.orchestrator.readCodeHost = async ({ resource, page, changedSince }) => {
    const answer = { etag: "", answeredAt: last, rateLimit: undefined, retryAfterSeconds: 0 };
    if (resource !== "pull_requests") return { ...answer, outcome: "not_found", body: undefined, nextPage: "" };
    const since = Number(changedSince!.seconds) * 1_000;
    const first = Number(page);
    const found = changes.filter((time) => time.getTime() >= since);
    const body = found.slice(first, first + 100).map((time) => ({ updated_at: time.toISOString() }));
    return { ...answer, outcome: "found", body, nextPage: first + 100 < found.length ? String(first + 100) : "" };
  };
  world.clock.advance(60_000);
  await world.service.reconcileDue();
  expect(await world.rows("SELECT read_to FROM polled_repositories")).toEqual([{ read_to: last }]);
});

test("a merged pull request is read a few times and then only after a change", async () => {
  github.open(1);
  world.clock.advance(60_000);
  github.act(github.pulls.get(1)!, "merge", person);
  await on.produced(factoryUid, urlOf(1), 0, REPO, 1);
  const reads = () => github.requests.filter((request) => request.includes("/pulls/1 ")).length;
  for (let hour = 0; hour < 30; hour += 1) {
    world.clock.advance(3_600_000);
    await world.service.reconcileDue();
  }
  const before = reads();
  expect(before).toBeLessThanOrEqual(4);
  expect(await world.rows("SELECT poll_at, is_final FROM polled_pull_requests")).toEqual([
    { poll_at: null, is_final: true },
  ]);
  github.act(github.pulls.get(1)!, "comment", person);
  for (let minute = 0; minute < 11; minute += 1) await passMinute(world.service);
  expect(reads()).toBeGreaterThan(before);
  expect((await on.record(factoryUid)).humanInteractions).toMatchObject({ comment: 1 });
});

describe("a code host whose rate limit is used up", () => {
  beforeEach(async () => {
    for (const number of [1, 2, 3]) {
      github.open(number);
      await on.produced(factoryUid, urlOf(number), 0, REPO, number);
    }
  });

  test("is not polled by any replica until it resets", async () => {
    github.allowance = { remaining: 0, resetsAt: new Date(world.clock.now().getTime() + 20 * 60_000) };
    await world.service.reconcileDue();
    const used = github.requests.length;
    expect(github.requests.every((request) => request.endsWith(" 403"))).toBe(true);
    const other = world.replica();
    for (let minute = 0; minute < 19; minute += 1) await passMinute(other);
    expect(github.requests.length).toBe(used);
    expect(await world.rows("SELECT code_host_uid FROM code_host_pauses")).toEqual([{ code_host_uid: CODE_HOST }]);
    for (let minute = 0; minute < 3; minute += 1) await passMinute(other);
    await other.stop();
    expect(await records()).toMatchObject([1, 2, 3].map((number) => ({ title: `Fix ${number}` })));
  });

  test("is asked once for all repositories that are due", async () => {
    const other = `${REPO}-two`;
    world.orchestrator.readCodeHost = (request) => github.read({ ...request, repository: REPO });
    await on.produced(factoryUid, `https://github.com/${other}/pull/9`, 0, other, 9);
    await world.service.reconcileDue();
    github.requests.length = 0;
    github.allowance = { remaining: 0, resetsAt: new Date(world.clock.now().getTime() + 20 * 60_000) };
    world.clock.advance(600_000);
    await world.service.reconcileDue();
    expect(github.requests).toHaveLength(1);
  });

  test("reserves a tenth of its allowance for runs", async () => {
    github.allowance = { remaining: 505, resetsAt: new Date(world.clock.now().getTime() + 20 * 60_000) };
    await world.service.reconcileDue();
    for (let minute = 0; minute < 15; minute += 1) await passMinute(world.service);
    expect(github.allowance?.remaining).toBeGreaterThan(480);
    for (let minute = 0; minute < 10; minute += 1) await passMinute(world.service);
    expect(await records()).toMatchObject([1, 2, 3].map((number) => ({ title: `Fix ${number}` })));
  });
});

test("pull requests wait until a connection serves their repository", async () => {
  github.open(1);
  world.orchestrator.readCodeHost = undefined;
  await on.produced(factoryUid, urlOf(1), 0, REPO, 1);
  await world.service.reconcileDue();
  expect(await world.rows("SELECT poll_at FROM polled_pull_requests")).toEqual([{ poll_at: null }]);
  world.orchestrator.readCodeHost = github.read;
  for (let minute = 0; minute < 2; minute += 1) await passMinute(world.service);
  expect(await on.record(factoryUid)).toMatchObject({ title: "Fix 1", historyComplete: true });
});

test("a code host that fails is tried again with growing pauses", async () => {
  github.open(1);
  let tries = 0;
  world.orchestrator.readCodeHost = async () => {
    tries += 1;
    throw new Error("down");
  };
  await on.produced(factoryUid, urlOf(1), 0, REPO, 1);
  for (let minute = 0; minute < 60; minute += 1) await passMinute(world.service);
  expect(tries).toBeGreaterThan(4);
  expect(tries).toBeLessThan(10);
  world.orchestrator.readCodeHost = github.read;
  for (let minute = 0; minute < 70; minute += 1) await passMinute(world.service);
  expect(await on.record(factoryUid)).toMatchObject({ title: "Fix 1", historyComplete: true });
});

describe("a local repository's pull request", () => {
  const url = "https://millwright.test/runs/r/pull-requests/p";
  let mergedAt: string | null;
  beforeEach(() => {
    mergedAt = null;
    world.orchestrator.readCodeHost = async ({ kind, etag }) => {
      const answer = { nextPage: "", answeredAt: world.clock.now(), rateLimit: undefined, retryAfterSeconds: 0 };
      if (kind !== "local") throw new Error(`A repository of kind ${kind} was read.`);
      const current = `"${mergedAt}"`;
      const body = {
        url,
        number: 1,
        title: "Local",
        repository: REPO,
        merged_at: mergedAt,
        created_at: "2026-11-20T09:00:00Z",
      };
      return { ...answer, etag: current, body, outcome: etag === current ? "not_modified" : "found" };
    };
  });

  test("is merged as soon as its head is part of the base branch, and not read after that", async () => {
    await on.produced(factoryUid, url, 0, REPO, 1, "LOCAL");
    for (let minute = 0; minute < 3; minute += 1) await passMinute(world.service);
    expect(await world.rows("SELECT FROM pull_requests")).toEqual([]);
    mergedAt = world.clock.now().toISOString();
    for (let minute = 0; minute < 11; minute += 1) await passMinute(world.service);
    expect(await on.record(factoryUid)).toMatchObject({
      provider: "LOCAL",
      state: "merged",
      historyComplete: true,
      humanCodeChange: false,
    });
    expect(await world.rows("SELECT poll_at, is_final FROM polled_pull_requests")).toEqual([
      { poll_at: null, is_final: true },
    ]);
  });
});
