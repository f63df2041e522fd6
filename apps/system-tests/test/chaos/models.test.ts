import { withChaos } from "../support/chaos.ts";

await withChaos("services-chaos", () => import("../models.test.ts"));
