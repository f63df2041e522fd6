export { InternalAddressRefused, outboundRule, refusalIn, type OutboundRule, type Resolve } from "./outbound-rule.ts";
export { allowedInternalHosts, LOOPBACK } from "./setting.ts";
