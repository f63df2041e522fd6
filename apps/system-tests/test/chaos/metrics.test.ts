import { withChaos } from "../support/chaos.ts";

await withChaos("services-chaos", () => import("../factory-metrics.test.ts"));
