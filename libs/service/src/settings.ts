import { optional, required, type Setting } from "@millwright/config";

/** Settings of every service; its own `config.ts` adds the rest. */
export const serviceSettings = {
  /** This service's own database; its role has no access to others. Migrated at start. */
  databaseUrl: required.url("DATABASE_URL"),
  /** Maximum number of connections to it. */
  databasePool: optional.int("DATABASE_POOL", 10),
  /**
   * NATS with JetStream: the public lifecycle feed and the wake-ups of the other services. Absent: consumers poll every
   * 2 s.
   */
  natsUrl: optional.url("NATS_URL"),
  /** Listen address of all ports. */
  host: optional.string("HOST", "127.0.0.1"),
  /** RPC over HTTP/2: Connect and gRPC. */
  grpcPort: optional.int("GRPC_PORT", 9090),
  /** HTTP/1.1: `/healthz`, `/readyz`, `/metrics`, `/jwks.json`. */
  opsPort: optional.int("OPS_PORT", 9091),
  /** Origin of links and signed URLs: the public URL of the gateway. */
  publicUrl: required.url("MILLWRIGHT_PUBLIC_URL"),
  /** The platform's master key, the same for all services: 32 bytes in base64. Either this or the file. */
  masterKey: optional.secret("MASTER_KEY"),
  /** A file with the master key, mode 0600. */
  masterKeyFile: optional.string("MASTER_KEY_FILE"),
  /** This service's own secret, from which its signing key is derived: 32 bytes in base64. Either this or the file. */
  serviceKey: optional.secret("SERVICE_KEY"),
  /** A file with the secret, mode 0600. */
  serviceKeyFile: optional.string("SERVICE_KEY_FILE"),
  /** Certificate chain and key (PEM files) of the RPC port. Absent: without TLS. */
  tlsCertFile: optional.string("TLS_CERT_FILE"),
  tlsKeyFile: optional.string("TLS_KEY_FILE"),
  /** CA certificates (PEM file) for upstream services with `https:` addresses. Absent: those of the system. */
  tlsCaFile: optional.string("TLS_CA_FILE"),
  /** "debug", "info", "warn" or "error". */
  logLevel: optional.string("LOG_LEVEL", "info"),
};

export type ServiceSettings = {
  readonly [K in keyof typeof serviceSettings]: (typeof serviceSettings)[K] extends Setting<infer T> ? T : never;
};
