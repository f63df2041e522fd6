import { withChaos } from "../support/chaos.ts";

await withChaos("services-chaos", () => import("../budgets.test.ts"));
