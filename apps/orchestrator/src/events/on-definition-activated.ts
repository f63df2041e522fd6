import type { EventHandler } from "@millwright/events";
import { activateDefinition, type ActivateDefinitionDeps } from "../usecases/activate-definition.ts";

/** Published by factories when a version of a definition became the current one: payload `{factory_uid, version}`. */
export const DEFINITION_ACTIVATED = "millwright.definition.activated.v1";

/**
 * Rolls this service forward to the version that factories committed. A version that was never staged here cannot be activated:
 * the event fails and is parked, so that it can be replayed.
 */
export const onDefinitionActivated =
  (deps: ActivateDefinitionDeps): EventHandler =>
  async (tx, { payload }) => {
    const { factory_uid: factoryUid, version } = payload;
    if (typeof factoryUid !== "string") throw new Error("definition.activated without factory_uid");
    await activateDefinition(deps, tx, factoryUid, Number(version));
  };
