import { underFire } from "../support/under-fire.ts";

await underFire("services-under-fire", () => import("../code-hosts.test.ts"));
