import { readFileSync } from "node:fs";
import { parseKey, readKeyFile } from "@millwright/vault";

export type Secrets = { readonly masterKey: Uint8Array; readonly serviceKey: Uint8Array };

/** Returns the keys of the service. Throws a plain Error that names the faulty variables, never their values. */
export const readSecrets = (settings: KeySettings): Secrets => ({
  masterKey: readMasterKey(settings),
  serviceKey: readServiceKey(settings),
});

type KeySettings = Readonly<
  Record<"masterKey" | "masterKeyFile" | "serviceKey" | "serviceKeyFile", string | undefined>
>;

/** Returns the platform's master key. Throws like `readSecrets`. */
export const readMasterKey = ({ masterKey, masterKeyFile }: KeySettings): Uint8Array =>
  secret("MASTER_KEY", masterKey, masterKeyFile);

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
