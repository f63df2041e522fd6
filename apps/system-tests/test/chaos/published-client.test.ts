import { withChaos } from "../support/chaos.ts";

await withChaos("services-chaos", () => import("../published-client.test.ts"));
