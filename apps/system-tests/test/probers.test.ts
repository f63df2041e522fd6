import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Deployment } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import {
  collectionOfMember,
  collectionsOfPath,
  comparable,
  idIn,
  isName,
  pathWith,
  randomLike,
  snapshot,
} from "./support/prober.ts";
import { script, startRun } from "./support/runs.ts";
import { operationsOf, Samples, type Operation } from "./support/samples.ts";
import { followEvents } from "./support/stream.ts";
import { aTeam, createSampleResources, type SampleResources } from "./support/resources.ts";

let platform: Deployment;
let [ours, theirs]: Client[] = [];
let [own, foreign]: SampleResources[] = [];
let samples: Samples;
let operations: Operation[];
let theirsBefore: string[];

/**
 * `ours` is the client of one team; `theirs` belongs to another team on the same platform, whose resources must stay
 * invisible.
 */
beforeAll(async () => {
  platform = await startPlatform({ workers: 1 });
  theirs = await connect(platform);
  ours = await aTeam(theirs, "ours");
  foreign = await createSampleResources(theirs, platform);
  own = await createSampleResources(ours, platform);
  samples = new Samples(ours.document);
  operations = operationsOf(ours.document);
  theirsBefore = await snapshot(theirs, operations, foreign);
});
afterAll(() => platform?.remove());

/** Probes every operation, several concurrently. Returns the failures. */
async function failures(probe: (operation: Operation) => Promise<void>): Promise<string[]> {
  const found: string[] = [];
  const left = [...operations];
  const work = async () => {
    for (let operation = left.shift(); operation; operation = left.shift()) {
      const name = `${operation.method} ${operation.path}`;
      await probe(operation).catch((error: unknown) => found.push(`${name}: ${(error as Error).message}`));
    }
  };
  await Promise.all(Array.from({ length: 4 }, work));
  return found;
}
const ownIds = (operation: Operation) =>
  Object.fromEntries(collectionsOfPath(operation).map(({ name, collection }) => [name, idIn(own!, collection)]));
/** The minimal valid body and the minimal valid query of an operation. */
const bodyOf = ({ body }: Operation): any => (body ? samples.valid(body) : undefined);
const queryOf = ({ query }: Operation, more: Record<string, string> = {}) => {
  const required = query
    .filter(({ isRequired }) => isRequired)
    .map(({ name, schema }) => [name, String(samples.valid(schema))]);
  const search = new URLSearchParams({ ...Object.fromEntries(required), ...more }).toString();
  return search && `?${search}`;
};
const ask = (
  operation: Operation,
  ids: Record<string, string>,
  {
    body = bodyOf(operation),
    query = {},
    headers = {},
    key,
    isAbsent = false,
  }: {
    body?: unknown;
    query?: Record<string, string>;
    headers?: Record<string, string>;
    key?: string | null;
    isAbsent?: boolean;
  } = {},
) =>
  ours!.call(operation.method, pathWith(operation.path, ids) + queryOf(operation, query), {
    body,
    headers,
    isAbsent,
    isRepeatable: true,
    key,
  });

/**
 * Sends two requests, one with the other team's id and one with an id that does not exist. Throws if the responses can
 * be distinguished.
 */
async function expectTheSame(theirId: string, asking: (id: string) => ReturnType<typeof ask>): Promise<void> {
  const nobodys = randomLike(theirId);
  const [seen, unseen] = [await asking(theirId), await asking(nobodys)];
  if (seen.status >= 500) throw new Error(`${seen.status} ${JSON.stringify(seen.body)}`);
  expect(comparable(seen, [theirId, nobodys])).toBe(comparable(unseen, [theirId, nobodys]));
}

/** Returns every non-empty subset of the positions of a path's ids, to be replaced by ids of the other team. */
const places = (count: number): number[][] =>
  Array.from({ length: 2 ** count - 1 }, (_one, bits) =>
    Array.from({ length: count }, (_place, index) => index).filter((index) => (bits + 1) & (1 << index)),
  );

/**
 * Statuses that the specification requires for absent ids below an existing factory, where they differ from 404:
 * deleting an absent branch succeeds, and an absent suite has no runs.
 */
const STATUS_OF_ABSENT: Readonly<Record<string, number>> = {
  "DELETE /factory/{uid}/branches/{branch_uid}": 204,
  "GET /factory/{factory_uid}/benchmarks/{suite_uid}/runs": 200,
};

describe("another team's ids return the same responses as unknown ids", () => {
  test("in paths", async () =>
    expect(
      await failures(async (operation) => {
        const parts = collectionsOfPath(operation);
        for (const chosen of places(parts.length)) {
          if (chosen.every((index) => isName(parts[index]!.collection))) continue;
          const foreignIds = chosen.map((index) => ({
            name: parts[index]!.name,
            id: idIn(foreign!, parts[index]!.collection),
          }));
          const nobodys = foreignIds.map(({ name, id }) => ({ name, id: randomLike(id) }));
          const sent = [...foreignIds, ...nobodys].map(({ id }) => id);
          const asking = (swapped: { name: string; id: string }[]) =>
            ask(
              operation,
              { ...ownIds(operation), ...Object.fromEntries(swapped.map(({ name, id }) => [name, id])) },
              { isAbsent: true },
            );
          const [seen, unseen] = [await asking(foreignIds), await asking(nobodys)];
          expect(comparable(seen, sent)).toBe(comparable(unseen, sent));
          expect(seen.status).toBe(
            (chosen.every((index) => index > 0) && STATUS_OF_ABSENT[`${operation.method} ${operation.path}`]) || 404,
          );
        }
      }),
    ).toEqual([]));
  test("in query parameters", async () =>
    expect(
      await failures(async (operation) => {
        for (const { name } of operation.query) {
          const collection = collectionOfMember(name);
          if (collection)
            await expectTheSame(idIn(foreign!, collection), (id) =>
              ask(operation, ownIds(operation), { query: { [name]: id } }),
            );
        }
      }),
    ).toEqual([]));
  test("in bodies", async () =>
    expect(
      await failures(async (operation) => {
        if (!operation.body) return;
        for (const name of Object.keys(samples.resolve(operation.body)["properties"] ?? {})) {
          const collection = collectionOfMember(name);
          if (collection)
            await expectTheSame(idIn(foreign!, collection), (id) =>
              ask(operation, ownIds(operation), { body: { prompt: "p", ...bodyOf(operation), [name]: id } }),
            );
        }
        if (
          "config" in (samples.resolve(operation.body)["properties"] ?? {}) &&
          operation.path.startsWith("/agent/run")
        )
          await expectTheSame(idIn(foreign!, "environments"), (id) =>
            ask(operation, {}, { body: { prompt: "p", config: { environment_id: id } } }),
          );
      }),
    ).toEqual([]));
  test("as the active team", async () =>
    expect(
      await failures(async (operation) => {
        if (!operation.takesTeamHeader) return;
        await expectTheSame(idIn(foreign!, "team"), (id) =>
          ask(operation, ownIds(operation), {
            body: operation.body && { prompt: "p", ...bodyOf(operation) },
            headers: { "x-service-team-uid": id },
          }),
        );
      }),
    ).toEqual([]));
});

test("another team's ids return the same event streams as unknown ids, and team streams contain no events of other teams", async () => {
  const streams = operations.filter(({ method, path }) => method === "GET" && path.endsWith("/events"));
  expect(streams.map(({ path }) => path).toSorted()).toEqual(["/agent/events", "/agent/runs/{runId}/events"]);
  const stream = (path: string) =>
    ours!.call("GET", path, { headers: { accept: "text/event-stream" }, isAbsent: true });
  const theirRun = foreign!["runs"]!;
  await expectTheSame(theirRun, (id) => stream(`/agent/runs/${id}/events`));
  expect((await stream(`/agent/runs/${theirRun}/events`)).status).toBe(404);
  const marker = await startRun(ours!, script("say: ours"));
  const events = await followEvents(
    `${ours!.url}/api/v1/agent/events?since=0`,
    { authorization: `Bearer ${ours!.key}` },
    ({ run_id: id, event_type: type }) => id === marker && type === "run_succeeded",
  );
  const { events: theirEvents } = await theirs!.get("/agent/events?limit=500");
  expect(theirEvents.length).toBeGreaterThan(0);
  expect(events.filter(({ run_id: id }) => theirEvents.some((one: any) => one.run_id === id))).toEqual([]);
});

describe("signed links", () => {
  /** Returns every link to a file of a team's resources. */
  const linksOf = async (api: Client, resources: SampleResources): Promise<string[]> => {
    const [run, conversation] = [
      `/agent/runs/${resources["runs"]}`,
      `/agent/conversations/${resources["conversations"]}`,
    ];
    const redirects = [
      `${run}/transcript`,
      `/agent/artifacts/${resources["artifacts"]}/download`,
      `${conversation}/screenshots/${resources["screenshots"]}/download`,
      `${conversation}/block-snapshot`,
    ];
    const followed = await Promise.all(
      redirects.map(async (path) => (await api.call("GET", path)).headers.get("location")!),
    );
    const [workspace] = (await api.get(`${run}/handoff/attachments`)).attachments;
    return [...followed, workspace.download_url];
  };
  const status = async (url: string | URL, init: RequestInit = {}) => {
    const response = await fetch(url, init);
    await response.body?.cancel();
    return response.status;
  };
  let [ourLinks, theirLinks]: string[][] = [];
  beforeAll(async () => {
    [ourLinks, theirLinks] = [await linksOf(ours!, own!), await linksOf(theirs!, foreign!)];
  });

  test("work without a key, for reading one file only", async () => {
    for (const [at, link] of ourLinks!.entries()) {
      expect(await status(link)).toBe(200);
      const [url, other] = [new URL(link), new URL(theirLinks![at]!)];
      const swapped = new URL(url);
      swapped.pathname = other.pathname;
      const signedByTheirs = new URL(url);
      signedByTheirs.searchParams.set("sig", other.searchParams.get("sig")!);
      const forLonger = new URL(url);
      forLonger.searchParams.set("exp", "99999999999");
      for (const changed of [swapped, signedByTheirs, forLonger, new URL(url.pathname, url)])
        expect(await status(changed)).toBe(403);
      for (const method of ["PUT", "DELETE", "POST"])
        expect(await status(url, { method, body: method === "DELETE" ? undefined : "x" })).toBe(403);
    }
  });
  test("for uploads accept one file and read nothing", async () => {
    const upload = async (api: Client, resources: SampleResources) =>
      new URL(
        (
          await api.post(`/agent/runs/${resources["runs"]}/attachments/prepare`, {
            files: [{ filename: "a", mime_type: "text/plain" }],
          })
        ).attachments[0].upload_url,
      );
    const [mine, other] = [await upload(ours!, own!), await upload(theirs!, foreign!)];
    const swapped = new URL(mine);
    swapped.pathname = other.pathname;
    expect([
      await status(swapped, { method: "PUT", body: "x" }),
      await status(mine),
      await status(mine, { method: "PUT", body: "x" }),
    ]).toEqual([403, 403, 200]);
  });
});

describe("anonymous callers", () => {
  test("may use what is documented as public, and nothing else", () => {
    const isOpen = operations
      .filter(({ access }) => access !== "required")
      .map(({ method, path, access }) => `${method} ${path} ${access}`);
    expect(isOpen.toSorted((a, b) => a.localeCompare(b))).toEqual([
      "GET /agent/artifacts/{artifactUid} optional",
      "GET /agent/artifacts/{artifactUid}/content optional",
      "GET /agent/artifacts/{artifactUid}/download optional",
      "GET /openapi.json none",
    ]);
  });
  test("and callers with wrong keys get 401 for everything else, whether it exists or not", async () =>
    expect(
      await failures(async (operation) => {
        if (operation.access === "none") return;
        const ids = ownIds(operation);
        for (const key of [null, "mw_nobodys", "mwr_a.b.c"]) {
          for (const asked of [
            ids,
            Object.fromEntries(Object.entries(ids).map(([name, id]) => [name, randomLike(id)])),
          ])
            expect((await ask(operation, asked, { key })).status).toBe(401);
        }
      }),
    ).toEqual([]));
});

describe("wrong input", () => {
  let oursBefore: string[];
  beforeAll(async () => void (oursBefore = await snapshot(ours!, operations, own!)));
  /** Expects a 4xx response, which is documented because every response is validated against the API document. */
  const expectRefusal = async (operation: Operation, what: string, answer: ReturnType<Client["call"]>) => {
    const { status, body } = await answer;
    if (status < 400 || status >= 500) throw new Error(`${what}: ${status} ${JSON.stringify(body)}`);
  };
  test("bodies that are invalid JSON, or not as documented", async () =>
    expect(
      await failures(async (operation) => {
        if (!operation.body) return;
        const path = pathWith(operation.path, ownIds(operation));
        for (const rawBody of ["{", "not json", '{"a":1,}', "\u0000", '"\\ud800"'])
          await expectRefusal(operation, rawBody, ours!.call(operation.method, path, { rawBody }));
        await expectRefusal(
          operation,
          "text/plain",
          ours!.call(operation.method, path, { rawBody: "{}", headers: { "content-type": "text/plain" } }),
        );
        for (const body of samples.wrong(operation.body))
          await expectRefusal(operation, JSON.stringify(body), ask(operation, ownIds(operation), { body }));
        for (const variant of samples.variants(operation.body)) {
          const valid = samples.valid(variant) as object;
          for (const [name, schema] of Object.entries<object>(variant["properties"] ?? {})) {
            const faults = [
              ...samples.wrong(schema),
              ...(samples.takes(schema, "any text") && !samples.isAnything(schema) ? ["nul \0"] : []),
            ];
            for (const value of faults)
              await expectRefusal(
                operation,
                `${name}: ${JSON.stringify(value)}`,
                ask(operation, ownIds(operation), { body: { ...valid, [name]: value, unknown_member: [1] } }),
              );
          }
        }
      }),
    ).toEqual([]));
  test("query parameters", async () =>
    expect(
      await failures(async (operation) => {
        for (const { name, schema } of operation.query) {
          // A map parameter is sent with its key in brackets.
          const key = samples.takes(schema, {}) ? `${name}[key]` : name;
          for (const value of samples.wrongTexts(name, schema))
            await expectRefusal(
              operation,
              `${key}=${value}`,
              ask(operation, ownIds(operation), { query: { [key]: value } }),
            );
        }
      }),
    ).toEqual([]));
  test("missing query parameters", async () =>
    expect(
      await failures(async (operation) => {
        if (operation.query.some(({ isRequired }) => isRequired))
          await expectRefusal(
            operation,
            "none",
            ours!.call(operation.method, pathWith(operation.path, ownIds(operation))),
          );
      }),
    ).toEqual([]));
  test("malformed ids in paths", async () =>
    expect(
      await failures(async (operation) => {
        for (const { name, schema } of operation.pathParameters) {
          for (const id of ["x y", "0", "null", "a".repeat(300), "..%2f", "\0", "%", "' OR 1=1", "😀"].filter(
            (text) => schema["format"] !== undefined || !samples.takes(schema, text),
          ))
            await expectRefusal(
              operation,
              id,
              ask(operation, { ...ownIds(operation), [name]: id }, { isAbsent: true }),
            );
        }
      }),
    ).toEqual([]));
  test("none of these requests has changed anything", async () =>
    expect(await snapshot(ours!, operations, own!)).toEqual(oursBefore));
});

test("nothing of the other team has changed", async () =>
  expect(await snapshot(theirs!, operations, foreign!)).toEqual(theirsBefore));
