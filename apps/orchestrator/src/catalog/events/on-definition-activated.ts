import type { EventHandler } from "@millwright/events";
import { activateDefinition, type ActivateDefinitionDeps } from "../usecases/activate-definition.ts";

/** Published by factories when a version of a definition becomes the current one. Payload: `{factory_uid, version}`. */
export const DEFINITION_ACTIVATED = "millwright.definition.activated.v1";

/**
 * Activates the version that factories committed. A version that was never staged in this service cannot be activated:
 * the event fails and is dead-lettered, so that it can be replayed.
 */
export const onDefinitionActivated =
  (deps: ActivateDefinitionDeps): EventHandler =>
  async (tx, { payload }) => {
    const { factory_uid: factoryUid, version } = payload;
    if (typeof factoryUid !== "string") throw new Error("definition.activated without factory_uid");
    await activateDefinition(deps, tx, factoryUid, Number(version));
  };
