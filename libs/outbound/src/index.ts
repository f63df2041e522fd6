export { InternalAddressRefused, outboundRule, refusalIn, type OutboundRule, type Resolve } from "./outbound-rule.ts";
export { allowedInternalHosts, defaultInternalHosts, isLoopbackHost, LOOPBACK, type Exposure } from "./setting.ts";
