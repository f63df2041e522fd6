import type { World } from "./setup.ts";

/** Costs computed again from raw facts alone, one fact at a time and without any sum that the service stores. */

export type Micros = { inference: bigint; compute: bigint; platform: bigint };
type Component = keyof Micros;
type Run = {
  uid: string;
  root: string;
  source: string;
  creator: string;
  agent: string;
  model: string;
  created_at: Date;
};
type Entry = { component: Component; kind: string; occurred_at: Date; micros: string | null; owner_run: string };
type Lines = { additions: number | null; deletions: number | null };
type Produced = Lines & { url: string; run: string; root: string; created_at: Date; run_created_at: Date };
export type RawFacts = { runs: ReadonlyMap<string, Run>; entries: readonly Entry[]; produced: readonly Produced[] };

/** Reads the facts of a factory. */
export async function readRawFacts(world: World, factoryUid: string): Promise<RawFacts> {
  const runs = await world.rows<Run>(
    `SELECT run_uid AS uid, root_run_uid AS root, source, creator_uid AS creator, agent_uid AS agent, model_id AS model, created_at
       FROM run_facts WHERE factory_uid = $1`,
    [factoryUid],
  );
  const entries = await world.rows<Entry>(
    "SELECT component, kind, occurred_at, micros::text, owner_run_uid AS owner_run FROM ledger_entries WHERE factory_uid = $1",
    [factoryUid],
  );
  const produced = await world.rows<Produced>(
    `SELECT lower(split_part(url, '://', 2)) AS url, run_uid AS run, root_run_uid AS root, created_at, run_created_at, additions, deletions
       FROM produced_pull_requests WHERE factory_uid = $1`,
    [factoryUid],
  );
  return { runs: new Map(runs.map((run) => [run.uid, run])), entries, produced };
}

export const noMicros = (): Micros => ({ inference: 0n, compute: 0n, platform: 0n });
export const sumOf = ({ inference, compute, platform }: Micros): bigint => inference + compute + platform;
export function addTo(sum: Micros, part: Micros): void {
  for (const component of ["inference", "compute", "platform"] as const) sum[component] += part[component];
}

/** The calendar start of the period that contains a time. */
export function labelOf(at: Date, unit: string): string {
  const day = new Date(at.toISOString().slice(0, 10));
  if (unit === "month") day.setUTCDate(1);
  if (unit === "week") while (day.getUTCDay() !== 0) day.setUTCDate(day.getUTCDate() - 1);
  return day.toISOString().slice(0, 10);
}

/** Calendar starts of all periods that [start, end) touches. */
export function labelsOf(start: Date, end: Date, unit: string): string[] {
  const labels = new Set<string>();
  for (let at = start.getTime(); at < end.getTime(); at += 3_600_000) labels.add(labelOf(new Date(at), unit));
  labels.add(labelOf(new Date(end.getTime() - 1), unit));
  return [...labels];
}

const isIn = (at: Date, start: Date, end: Date): boolean => at >= start && at < end;

/** `periods`: by their calendar starts. */
export type GroupSpend = { spend: Micros; periods: Map<string, Micros> };

/** Spend per group, and per group and period, of what occurred in [start, end). */
export function spendByGroup(
  { runs, entries }: RawFacts,
  groupBy: string,
  start: Date,
  end: Date,
  unit: string,
): Map<string, GroupSpend> {
  const groups = new Map<string, GroupSpend>();
  for (const { component, occurred_at, micros, owner_run } of entries) {
    if (!isIn(occurred_at, start, end) || micros === null) continue;
    const owner = runs.get(owner_run)!;
    const root = runs.get(owner.root)!;
    const key =
      { source: root.source, user: root.creator, agent: owner.agent, model: owner.model }[groupBy]! || "UNKNOWN";
    const group = groups.get(key) ?? { spend: noMicros(), periods: new Map<string, Micros>() };
    groups.set(key, group);
    group.spend[component] += BigInt(micros);
    const label = labelOf(occurred_at, unit);
    const period = group.periods.get(label) ?? noMicros();
    group.periods.set(label, period);
    period[component] += BigInt(micros);
  }
  return groups;
}

/** How many model calls and compute intervals occurred in [start, end), and how many of them have a price. */
export function coverageOf({ entries }: RawFacts, start: Date, end: Date): bigint[] {
  const of = (kind: string): Entry[] =>
    entries.filter((entry) => entry.kind === kind && isIn(entry.occurred_at, start, end));
  const counts = (kind: string): number[] => [of(kind).length, of(kind).filter(({ micros }) => micros !== null).length];
  return ["model_call", "compute_interval"].flatMap(counts).map(BigInt);
}

export type PullRequestFacts = {
  url: string;
  firstSeenAt: Date;
  lines: number | null;
  spend: Micros;
  models: Map<string, number>;
  kickoff: Run;
};

/** Every pull request of the factory with its whole spend. `models`: not rounded. */
export function pullRequests(facts: RawFacts): PullRequestFacts[] {
  return [...Map.groupBy(facts.produced, ({ url }) => url)].map(([url, produced]) => {
    const spend = noMicros();
    const models = new Map<string, number>();
    for (const root of new Set(produced.map((each) => each.root))) {
      const urls = [...new Set(facts.produced.filter((each) => each.root === root).map((each) => each.url))].toSorted();
      addTo(spend, partOf(treeSpend(facts, root), urls.length, urls.indexOf(url)));
      for (const entry of facts.entries) {
        const owner = facts.runs.get(entry.owner_run)!;
        if (entry.component !== "inference" || owner.root !== root) continue;
        models.set(owner.model, (models.get(owner.model) ?? 0) + Number(entry.micros ?? 0) / urls.length);
      }
    }
    const oldest = produced.toSorted(
      (a, b) => Number(a.run_created_at) - Number(b.run_created_at) || (a.run < b.run ? -1 : 1),
    )[0]!;
    const measured = produced.find(({ additions, deletions }) => additions !== null && deletions !== null);
    return {
      url,
      spend,
      models,
      kickoff: facts.runs.get(oldest.run)!,
      firstSeenAt: new Date(Math.min(...produced.map(({ created_at }) => created_at.getTime()))),
      lines: measured ? measured.additions! + measured.deletions! : null,
    };
  });
}

/** The spend of a whole tree. */
export function treeSpend({ runs, entries }: RawFacts, root: string): Micros {
  const spend = noMicros();
  for (const { component, micros, owner_run } of entries)
    if (runs.get(owner_run)!.root === root) spend[component] += BigInt(micros ?? 0);
  return spend;
}

/** One of `count` even parts; the first ones carry what does not divide. */
function partOf(whole: Micros, count: number, index: number): Micros {
  const part = (micros: bigint): bigint => {
    let rest = micros % BigInt(count);
    if (rest < 0n) rest += BigInt(count);
    return (micros - rest) / BigInt(count) + (BigInt(index) < rest ? 1n : 0n);
  };
  return { inference: part(whole.inference), compute: part(whole.compute), platform: part(whole.platform) };
}

/** Pull requests first seen in [start, end). */
export const firstSeenIn = (all: readonly PullRequestFacts[], start: Date, end: Date): PullRequestFacts[] =>
  all.filter(({ firstSeenAt }) => isIn(firstSeenAt, start, end));

/** The size of a pull request; null: its line counts are not known. */
export const sizeOf = ({ lines }: PullRequestFacts): string | null =>
  lines === null ? null : lines < 100 ? "S" : lines < 500 ? "M" : lines < 1000 ? "L" : "XL";
