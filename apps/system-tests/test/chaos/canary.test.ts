import { withChaos } from "../support/chaos.ts";

await withChaos("services-chaos", () => import("../canary.test.ts"));
