import type { EventHandlers } from "@millwright/events";
import { deleteDefinitions, lockActivation, lockScorersOf } from "../store/definition-store.ts";
import { deleteScorers } from "../store/scorer-store.ts";
import { hideSuites, lockSuitesOf } from "../store/suite-store.ts";
import { enqueueCancel } from "../usecases/cancel-judge-run.ts";
import { causedBy } from "./origin.ts";
import { scorerDeleted } from "./scorer-events.ts";
import { suiteDeleted } from "./suite-events.ts";

/** A deleted factory takes its scorers, its suites and what was staged for it along; judge runs are cancelled, benchmark runs stay readable. */
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
