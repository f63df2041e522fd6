import type { EventHandlers } from "@millwright/events";
import { deleteDefinitions, lockActivation, lockScorersOf } from "../store/definition-store.ts";
import { deleteScorers } from "../store/scorer-store.ts";
import { hideSuites, lockSuitesOf } from "../store/suite-store.ts";
import { enqueueCancel } from "../usecases/cancel-judge-run.ts";
import { causedBy } from "./origin.ts";
import { scorerDeleted } from "./scorer-events.ts";
import { suiteDeleted } from "./suite-events.ts";

/**
 * Handles events of factories. Deletes the scorers, suites and stages of a deleted factory. Judge runs are cancelled;
 * benchmark runs remain readable.
 */
export const onFactoryEvents = (): EventHandlers => ({
  async "millwright.factory.deleted.v1"(tx, event) {
    await lockActivation(tx, event.entityUid);
    const scorers = await lockScorersOf(tx, event.entityUid);
    await deleteScorers(tx, scorers, {
      event: (scorer) => scorerDeleted(scorer, causedBy(event)),
      cancel: enqueueCancel,
    });
    await hideSuites(tx, await lockSuitesOf(tx, event.entityUid), event.occurredAt, (suite) =>
      suiteDeleted(suite, causedBy(event)),
    );
    await deleteDefinitions(tx, event.entityUid);
  },
});
