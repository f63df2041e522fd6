import { z } from "zod";
import { route, uuid, type Route } from "../../rest/index.ts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { factoryMember, factoryParam } from "./webhook-paths.ts";

/** A test can contain a payload of the maximum delivery size, and JSON within JSON is longer. */
const TEST_BODY_BYTES_MAX = 2 * 1024 * 1024;

const FilterTest = z.object({
  webhook_ids: z.array(uuid()).min(1).max(100).meta({ description: "Webhooks that the trigger selects." }),
  payload_filter: z.unknown().optional(),
  delivery_uid: uuid().optional().meta({ description: "Uid of a stored delivery. Alternative to `payload`." }),
  payload: z.unknown().optional().meta({ description: "A payload. Alternative to `delivery_uid`." }),
});
const Check = z.object({ passed: z.boolean(), detail: z.string() });
const TestedFilter = z
  .object({
    would_trigger: z.boolean(),
    label: z.enum(["Would trigger", "Would not trigger"]),
    checks: z.object({ webhook: Check, payload: Check.extend({ failed_paths: z.array(z.string()) }) }),
  })
  .meta({ id: "TestedFilter" });

/** Returns the routes that test the filter of a webhook trigger: below the factory, and the published path. */
export function webhookFilterTestRoutes({ webhooks }: Pick<Upstreams, "webhooks">): Route[] {
  const testFilter = async (
    factoryUid: string,
    body: z.output<typeof FilterTest>,
    input: Parameters<typeof onBehalf>[0],
  ) => {
    const tested = await webhooks.testFilter(
      {
        factoryUid,
        webhookUids: body.webhook_ids,
        deliveryUid: body.delivery_uid ?? "",
        payloadFilter: body.payload_filter === undefined ? "" : JSON.stringify(body.payload_filter),
        ...("payload" in body && body.payload !== undefined && { payload: Buffer.from(JSON.stringify(body.payload)) }),
      },
      onBehalf(input),
    );
    const checks = {
      webhook: checkRecord(tested.webhook),
      payload: { ...checkRecord(tested.payload), failed_paths: tested.failedPaths },
    };
    return {
      would_trigger: tested.wouldTrigger,
      label: tested.wouldTrigger ? ("Would trigger" as const) : ("Would not trigger" as const),
      checks,
    };
  };
  const common = {
    verbs: ["webhook.manage"],
    method: "POST",
    extension: true,
    summary: "Test a filter of a webhook trigger",
    description:
      "Returns whether a trigger with these webhooks and this filter would match a stored delivery or a payload. Starts and stores nothing.",
    bodyBytesMax: TEST_BODY_BYTES_MAX,
    exactNumbers: true,
    response: TestedFilter,
  } as const;
  return [
    route({
      ...common,
      path: "/factory/{uid}/webhooks/test-filter",
      params: z.object(factoryParam),
      errors: [403],
      body: FilterTest,
      handler: (input) => testFilter(input.params.uid, input.body, input),
    }),
    route({
      ...common,
      path: "/factory/webhooks/dry-run",
      body: FilterTest.extend(factoryMember),
      errors: [403, 404],
      handler: (input) => testFilter(input.body.factory_uid, input.body, input),
    }),
  ];
}

const checkRecord = (check: { passed: boolean; detail: string } | undefined) => ({
  passed: check?.passed ?? false,
  detail: check?.detail ?? "",
});
