import type { Command } from "../command.ts";
import { supportBundle } from "./support-bundle.ts";
import { doctor } from "./doctor.ts";
import { rotateMasterKey } from "./rotate-master-key.ts";
import { migrate } from "./migrate.ts";
import { ownerKey } from "./owner-key.ts";
import { rebuildMetrics } from "./rebuild-metrics.ts";

export const COMMANDS: readonly Command[] = [doctor, migrate, ownerKey, rebuildMetrics, rotateMasterKey, supportBundle];
