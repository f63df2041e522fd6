export { masterKeyId, Vault, type Sealed } from "./vault.ts";
export { deriveKey, loadOrCreateMasterKey, parseKey, readKeyFile } from "./master-key.ts";
export { signingKeyOf } from "./signing-key.ts";
