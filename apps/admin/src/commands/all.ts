import type { Command } from "../command.ts";
import { supportBundle } from "./support-bundle.ts";
import { backup, restore } from "./backup.ts";
import { doctor } from "./doctor.ts";
import { eventsDiscard, eventsList, eventsReplay } from "./events.ts";
import { rotateMasterKey } from "./rotate-master-key.ts";
import { migrate } from "./migrate.ts";
import { ownerKey } from "./owner-key.ts";
import { rebuildMetrics } from "./rebuild-metrics.ts";
import { teamErase } from "./team-erase.ts";
import { teamExport } from "./team-export.ts";

export const COMMANDS: readonly Command[] = [
  backup,
  doctor,
  eventsDiscard,
  eventsList,
  eventsReplay,
  migrate,
  ownerKey,
  rebuildMetrics,
  restore,
  rotateMasterKey,
  supportBundle,
  teamErase,
  teamExport,
];
