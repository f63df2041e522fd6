export { masterKeyId, Vault, type Sealed } from "./vault.ts";
export {
  deriveKey,
  deriveKeys,
  loadOrCreateMasterKey,
  platformWorkerKey,
  parseKey,
  readKeyFile,
} from "./master-key.ts";
export type { MasterKeys } from "./master-key.ts";
export { signingKeyOf } from "./signing-key.ts";
