import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { aCaller, domainError, eventually } from "@millwright/testing";
import type { Caller } from "@millwright/caller";
import type { orchestrator } from "@millwright/contracts";
import { newUid } from "@millwright/ids";
import { catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";
import { startExecution } from "./support/fake-worker.ts";
import { teamOf } from "./support/platform.ts";

let p: CatalogPlatform;
beforeAll(async () => {
  p = await catalogPlatform();
  p.eventLog.start();
});
afterAll(() => p.close());

async function aTeam() {
  const caller = aCaller();
  return { caller, worker: await p.worker({ teamUid: teamOf(caller) }) };
}
type Asked = { teamUid?: string; runUids?: string[]; afterSequence?: bigint; pageSize?: number };
const list = (caller: Caller, asked: Asked = {}) => p.runEvents.listTeamEvents(asked, p.as(caller));
const shown = ({ events }: { events: readonly orchestrator.TeamEvent[] }) =>
  events.map(({ runUid, eventType }) => [runUid, eventType]);
const WHOLE_LIFE = ["run_created", "run_pending", "run_claimed", "run_in_progress", "run_succeeded"];

/** Creates a run and completes it. */
async function live({ caller, worker }: Awaited<ReturnType<typeof aTeam>>): Promise<string> {
  const run = await p.run(caller);
  await (await startExecution(p, worker)).complete("DONE");
  return run.uid;
}

/** Collects the events that a watcher receives, until it is stopped. */
function watch(caller: Caller, asked: Asked = {}) {
  const events: orchestrator.TeamEvent[] = [];
  const from: bigint[] = [];
  const stop = new AbortController();
  const ended = (async () => {
    for await (const { events: page, afterSequence } of p.runEvents.watchTeamEvents(asked, {
      ...p.as(caller),
      signal: stop.signal,
    })) {
      if (from.length === 0) from.push(afterSequence);
      events.push(...page);
    }
  })().catch(() => undefined);
  return {
    events,
    from,
    opened: () => eventually(() => from.length > 0),
    async stop() {
      stop.abort();
      await ended;
    },
  };
}

describe("pages", () => {
  test("contain each state of each run of the team once, in order, immediately", async () => {
    const team = await aTeam();
    const [first, second] = [await live(team), await live(team)];
    const all = await list(team.caller);
    expect(shown(all)).toEqual([
      ...WHOLE_LIFE.map((type) => [first, type]),
      ...WHOLE_LIFE.map((type) => [second, type]),
    ]);
    expect(
      all.events.every(
        ({ teamUid, uid, occurredAt }) => teamUid === teamOf(team.caller) && uid !== "" && occurredAt !== undefined,
      ),
    ).toBe(true);
    const walked: orchestrator.TeamEvent[] = [];
    for (let after = 0n, hasMore = true; hasMore; after = walked.at(-1)!.sequence) {
      const page = await list(team.caller, { afterSequence: after, pageSize: 3 });
      expect(page.events.length).toBeLessThanOrEqual(3);
      walked.push(...page.events);
      hasMore = page.hasMore;
    }
    expect(walked).toEqual(all.events);
  });
  test("of named runs contain only theirs; of unknown runs and another team's, nothing", async () => {
    const [team, otherTeam] = [await aTeam(), await aTeam()];
    const [ours, theirs] = [await live(team), await live(otherTeam)];
    await live(team);
    expect(shown(await list(team.caller, { runUids: [ours.toUpperCase(), theirs, newUid(), "x"] }))).toEqual(
      WHOLE_LIFE.map((type) => [ours, type]),
    );
    for (const runUids of [[theirs], [newUid()], ["x"]])
      expect(shown(await list(team.caller, { runUids }))).toEqual([]);
    await expect(list(team.caller, { runUids: Array.from({ length: 101 }, newUid) })).rejects.toEqual(
      domainError({ kind: "invalid_argument", reason: "too_many_runs" }),
    );
  });
  test("contain nothing of other teams, of teams without the right to read, and of personal runs", async () => {
    const team = await aTeam();
    await live(team);
    await p.run(team.caller, { owner: { type: "user", uid: team.caller.principal.uid } });
    const blind = { ...team.caller, teams: team.caller.teams.map((membership) => ({ ...membership, verbs: [] })) };
    expect([
      shown(await list(aCaller())),
      shown(await list(blind)),
      shown(await list(team.caller, { teamUid: newUid() })),
    ]).toEqual([[], [], []]);
    expect((await list(team.caller, { teamUid: teamOf(team.caller) })).events).toHaveLength(WHOLE_LIFE.length);
  });
  test("of several teams have one order", async () => {
    const [first, second] = [await aTeam(), await aTeam()];
    const both = { ...first.caller, teams: [...first.caller.teams, ...second.caller.teams] };
    const runs = [await live(first), await live(second), await live(first)];
    expect(shown(await list(both))).toEqual(runs.flatMap((run) => WHOLE_LIFE.map((type) => [run, type])));
  });
});

describe("a watcher", () => {
  test("receives events from now on, and from its cursor", async () => {
    const team = await aTeam();
    await live(team);
    const now = watch(team.caller);
    await now.opened();
    const run = await live(team);
    await eventually(() => now.events.length >= WHOLE_LIFE.length);
    await now.stop();
    expect(now.events.map(({ runUid, eventType }) => [runUid, eventType])).toEqual(
      WHOLE_LIFE.map((type) => [run, type]),
    );
    const [second, third] = now.events;
    const later = watch(team.caller, { afterSequence: second!.sequence });
    await eventually(() => later.events.length >= WHOLE_LIFE.length - 1);
    await later.stop();
    expect([later.from, later.events[0]]).toEqual([[second!.sequence], third]);
  });

  test("receives everything once and in order while many write, whenever it starts and reconnects", async () => {
    const teams = await Promise.all([aTeam(), aTeam(), aTeam()]);
    const all = { ...teams[0].caller, teams: teams.flatMap(({ caller }) => caller.teams) };
    const watchers = [watch(all, { afterSequence: 0n }), watch(teams[1].caller, { afterSequence: 0n })];
    let broken = watch(all, { afterSequence: 0n });
    const events: orchestrator.TeamEvent[] = [];
    for (let round = 0; round < 4; round++) {
      await Promise.all(teams.flatMap((team) => [live(team), p.run(team.caller), p.run(team.caller)]));
      await broken.stop();
      events.push(...broken.events);
      broken = watch(all, { afterSequence: events.at(-1)?.sequence ?? 0n });
    }
    const expected = (await list(all, { pageSize: 500 })).events;
    const ofOne = expected.filter(({ teamUid }) => teamUid === teamOf(teams[1].caller));
    await eventually(
      () =>
        watchers[0]!.events.length >= expected.length &&
        watchers[1]!.events.length >= ofOne.length &&
        events.length + broken.events.length >= expected.length,
    );
    await Promise.all([...watchers, broken].map((watcher) => watcher.stop()));
    expect([watchers[0]!.events, watchers[1]!.events, [...events, ...broken.events]]).toEqual([
      expected,
      ofOne,
      expected,
    ]);
  });

  test("receives keep-alives while there are no events", async () => {
    const { caller } = await aTeam();
    const stop = new AbortController();
    let empty = 0;
    for await (const { events } of p.runEvents.watchTeamEvents({}, { ...p.as(caller), signal: stop.signal })) {
      expect(events).toEqual([]);
      if ((empty += 1) === 3) break;
    }
    expect(empty).toBe(3);
  });
});
