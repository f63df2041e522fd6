import { withChaos } from "../support/chaos.ts";

await withChaos("processes-chaos", () => import("../factory.test.ts"));
