import { withChaos } from "../support/chaos.ts";

await withChaos("services-chaos", () => import("../states.test.ts"));
