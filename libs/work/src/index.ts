export { enqueueAllWork, enqueueWork, sendWork, WORK_ENQUEUED } from "./enqueue-work.ts";
export type { NewWork } from "./enqueue-work.ts";
export { WORK_TABLES_SQL } from "./tables.ts";
export { WorkQueue } from "./work-queue.ts";
export type { WorkBatches, WorkBatchHandler, WorkContext, WorkHandler, WorkQueueDeps } from "./work-queue.ts";
export { restartDeadLettered } from "./work-items.ts";
export type { WorkCount, WorkItem } from "./work-items.ts";
