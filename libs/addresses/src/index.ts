export { addressSet, isInternal } from "./addresses.ts";
export { canonicalNetworks } from "./networks.ts";
