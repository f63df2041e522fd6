import { readFileSync } from "node:fs";
import { parseKey, readKeyFile } from "@millwright/vault";
import type { ServiceSettings } from "./settings.ts";

export type Secrets = { readonly masterKey: Uint8Array; readonly serviceKey: Uint8Array };

/** Throws a plain Error that names the faulty variables, never their values. */
export function readSecrets(settings: ServiceSettings): Secrets {
  return {
    masterKey: secret("MASTER_KEY", settings.masterKey, settings.masterKeyFile),
    serviceKey: secret("SERVICE_KEY", settings.serviceKey, settings.serviceKeyFile),
  };
}

function secret(name: string, text: string | undefined, file: string | undefined): Uint8Array {
  if ((text === undefined) === (file === undefined))
    throw new Error(`Invalid configuration:\n  set ${name} or ${name}_FILE, and not both`);
  return file === undefined ? parseKey(text ?? "", name) : readKeyFile(file);
}

export type Tls = { readonly server?: { readonly cert: string; readonly key: string }; readonly ca?: string };

export function readTls({ tlsCertFile, tlsKeyFile, tlsCaFile }: ServiceSettings): Tls {
  if ((tlsCertFile === undefined) !== (tlsKeyFile === undefined))
    throw new Error("Invalid configuration:\n  Set both TLS_CERT_FILE and TLS_KEY_FILE, or neither");
  return {
    ...(tlsCertFile !== undefined && tlsKeyFile !== undefined
      ? { server: { cert: readFileSync(tlsCertFile, "utf8"), key: readFileSync(tlsKeyFile, "utf8") } }
      : {}),
    ...(tlsCaFile === undefined ? {} : { ca: readFileSync(tlsCaFile, "utf8") }),
  };
}
