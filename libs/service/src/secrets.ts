import { readFileSync } from "node:fs";
import { parseKey, readKeyFile, type MasterKeys } from "@millwright/vault";

export type Secrets = MasterKeys & { readonly serviceKey: Uint8Array };

/** Returns the keys of the service. Throws a plain Error that names the faulty variables, never their values. */
export const readSecrets = (settings: KeySettings): Secrets => ({
  ...readMasterKeys(settings),
  serviceKey: readServiceKey(settings),
});

type MasterKeySettings = Readonly<
  Record<"masterKey" | "masterKeyFile" | "secondaryMasterKey" | "secondaryMasterKeyFile", string | undefined>
>;
type KeySettings = MasterKeySettings & Readonly<Record<"serviceKey" | "serviceKeyFile", string | undefined>>;

/** Returns the platform's master keys. Throws like `readSecrets`. */
export const readMasterKeys = (settings: MasterKeySettings): MasterKeys => ({
  masterKey: readMasterKey(settings),
  secondaryMasterKey: readSecondaryMasterKey(settings),
});

/** Returns the platform's master key. Throws like `readSecrets`. */
export const readMasterKey = ({ masterKey, masterKeyFile }: MasterKeySettings): Uint8Array =>
  secret("MASTER_KEY", masterKey, masterKeyFile);

/** Returns the other master key of a rotation; undefined if none is set. Throws like `readSecrets`. */
export const readSecondaryMasterKey = ({
  secondaryMasterKey: text,
  secondaryMasterKeyFile: file,
}: MasterKeySettings): Uint8Array | undefined =>
  text === undefined && file === undefined ? undefined : secret("MASTER_KEY_SECONDARY", text, file);

/** Returns the service's own secret. Throws like `readSecrets`. */
export const readServiceKey = ({ serviceKey, serviceKeyFile }: KeySettings): Uint8Array =>
  secret("SERVICE_KEY", serviceKey, serviceKeyFile);

function secret(name: string, text: string | undefined, file: string | undefined): Uint8Array {
  if ((text === undefined) === (file === undefined)) throw new Error(`Set ${name} or ${name}_FILE, and not both.`);
  return file === undefined ? parseKey(text ?? "", name) : readKeyFile(file);
}

export type Tls = { readonly server?: { readonly cert: string; readonly key: string }; readonly ca?: string };

/** Returns the certificates of the RPC port and of upstream services. Throws a plain Error that names the variable. */
export function readTls({ tlsCertFile, tlsKeyFile, tlsCaFile }: TlsSettings): Tls {
  if ((tlsCertFile === undefined) !== (tlsKeyFile === undefined))
    throw new Error("Set both TLS_CERT_FILE and TLS_KEY_FILE, or neither.");
  return {
    ...(tlsCertFile !== undefined && tlsKeyFile !== undefined
      ? { server: { cert: readText("TLS_CERT_FILE", tlsCertFile), key: readText("TLS_KEY_FILE", tlsKeyFile) } }
      : {}),
    ...(tlsCaFile === undefined ? {} : { ca: readText("TLS_CA_FILE", tlsCaFile) }),
  };
}

type TlsSettings = Readonly<Record<"tlsCertFile" | "tlsKeyFile" | "tlsCaFile", string | undefined>>;

function readText(name: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new Error(`${name}: ${(error as Error).message}`, { cause: error });
  }
}
