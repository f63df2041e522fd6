import { withChaos } from "../support/chaos.ts";

await withChaos("services-chaos", () => import("../failure-matrix.test.ts"));
