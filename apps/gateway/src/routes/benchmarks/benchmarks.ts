import { z } from "zod";
import type { scoring } from "@millwright/contracts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { cursor, json, PageInfo, pageInfo, pageLimit, pathUid, route, uuid, type Route } from "../../rest/index.ts";
import { draftRecord, suiteMessage, suiteRecord, wholeSuiteRecord } from "./benchmark-records.ts";
import { NewSuite, Suite, SuitePatch, SuiteWithTasks, TaskDraft } from "./benchmark-schemas.ts";
import type { FindProfiles } from "../identity/profiles.ts";
import { TEXT_BODY_BYTES_MAX } from "../runs/run-schemas.ts";

export type BenchmarkRoutesDeps = { upstreams: Pick<Upstreams, "benchmarks">; findProfiles: FindProfiles };

const inFactory = z.object({ factory_uid: pathUid("factory") });
export const suiteParams = inFactory.extend({ suite_uid: pathUid("suite") });

export const BENCHMARKS = "/factory/{factory_uid}/benchmarks";
export const SUITE = `${BENCHMARKS}/{suite_uid}`;

/** Returns the routes of benchmark suites. Drafting a task from a run is a Millwright extension. */
export function benchmarkRoutes({ upstreams: { benchmarks }, findProfiles }: BenchmarkRoutesDeps): Route[] {
  const creatorsOf = (suites: readonly scoring.Suite[]) =>
    findProfiles([...new Set(suites.map(({ creatorUid }) => creatorUid))].filter(Boolean));
  const whole = async (suite: scoring.Suite) => wholeSuiteRecord(suite, await creatorsOf([suite]));
  return [
    route({
      method: "POST",
      path: BENCHMARKS,
      summary: "Create a benchmark suite",
      description: "If the request contains a uid, repeating it returns the existing suite with 200.",
      verbs: ["factory.manage"],
      errors: [403, 409],
      idempotent: true,
      status: 201,
      bodyBytesMax: TEXT_BODY_BYTES_MAX,
      params: inFactory,
      body: NewSuite,
      response: SuiteWithTasks,
      responses: { 200: { description: "The suite already exists with this content.", schema: SuiteWithTasks } },
      handler: async (input) => {
        const suite = suiteMessage(input.params.factory_uid, input.body.uid ?? "", input.body);
        const { suite: stored, created } = await benchmarks.createSuite(
          { suite, idempotencyKey: input.request.idempotency?.key ?? "" },
          onBehalf(input),
        );
        return created ? whole(stored!) : json(200, await whole(stored!));
      },
    }),
    route({
      method: "GET",
      path: BENCHMARKS,
      summary: "List a factory's benchmark suites, newest first",
      verbs: ["factory.view"],
      errors: [403],
      params: inFactory,
      query: z.object({ limit: pageLimit(50), cursor: cursor() }),
      response: z.object({ suites: z.array(Suite), page_info: PageInfo }),
      handler: async (input) => {
        const { limit, cursor: pageToken = "" } = input.query;
        const page = await benchmarks.listSuites(
          { factoryUid: input.params.factory_uid, pageSize: limit, pageToken },
          onBehalf(input),
        );
        const creators = await creatorsOf(page.suites);
        return {
          suites: page.suites.map((suite) => suiteRecord(suite, creators)),
          page_info: pageInfo(page.nextPageToken),
        };
      },
    }),
    route({
      method: "POST",
      path: `${BENCHMARKS}/compose-task`,
      summary: "Draft a task from a run",
      extension: true,
      description:
        "Returns the run's title, prompt and repositories at the commits it started from, without success criteria. Stores nothing.",
      verbs: ["factory.view", "run.view"],
      errors: [403],
      params: inFactory,
      body: z.object({ run_id: uuid() }),
      response: TaskDraft,
      handler: async (input) => {
        const { task } = await benchmarks.composeTask(
          { factoryUid: input.params.factory_uid, runUid: input.body.run_id },
          onBehalf(input),
        );
        return draftRecord(task!);
      },
    }),
    route({
      method: "GET",
      path: SUITE,
      summary: "Read a suite with its tasks and configurations",
      verbs: ["factory.view"],
      errors: [403],
      params: suiteParams,
      response: SuiteWithTasks,
      handler: async (input) => {
        const { factory_uid: factoryUid, suite_uid: suiteUid } = input.params;
        return whole((await benchmarks.getSuite({ factoryUid, suiteUid }, onBehalf(input))).suite!);
      },
    }),
    route({
      method: "PATCH",
      path: SUITE,
      summary: "Change a suite",
      description:
        "Changes exactly the members that are sent, and increments the version if anything changes. `tasks` and `configurations` replace the whole list. Existing benchmark runs keep their frozen content.",
      verbs: ["factory.manage"],
      errors: [403, 409],
      bodyBytesMax: TEXT_BODY_BYTES_MAX,
      params: suiteParams,
      body: SuitePatch,
      response: SuiteWithTasks,
      handler: async (input) => {
        const { factory_uid: factoryUid, suite_uid: suiteUid } = input.params;
        const suite = suiteMessage(factoryUid, suiteUid, input.body);
        return whole(
          (await benchmarks.updateSuite({ suite, updateMask: { paths: Object.keys(input.body) } }, onBehalf(input)))
            .suite!,
        );
      },
    }),
    route({
      method: "DELETE",
      path: SUITE,
      summary: "Delete a suite",
      description: "Its benchmark runs stay readable.",
      verbs: ["factory.manage"],
      errors: [403, 409],
      status: 204,
      params: suiteParams,
      handler: async (input) => {
        await benchmarks.deleteSuite(
          { factoryUid: input.params.factory_uid, suiteUid: input.params.suite_uid },
          onBehalf(input),
        );
      },
    }),
  ];
}
