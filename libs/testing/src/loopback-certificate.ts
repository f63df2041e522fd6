import { createPublicKey, generateKeyPairSync, randomBytes, sign, type KeyObject } from "node:crypto";

/** A certificate and its key, in PEM. */
export type Certificate = { readonly cert: string; readonly key: string };

/** Creates a private authority and its certificate for 127.0.0.1; both valid for an hour. */
export function loopbackCertificate(): { readonly ca: string; readonly server: Certificate } {
  const [authority, server] = [keys(), keys()];
  const [issuer, subject] = [name("Authority of a test"), name("Loopback")];
  const isAuthority = extension("551d13", seq(tlv(0x01, Buffer.from([0xff]))));
  const isLoopback = extension("551d11", seq(tlv(0x87, Buffer.from([127, 0, 0, 1]))));
  return {
    ca: certificate({ issuer, subject: issuer, key: authority, by: authority, extension: isAuthority }),
    server: {
      cert: certificate({ issuer, subject, key: server, by: authority, extension: isLoopback }),
      key: server.export({ type: "pkcs8", format: "pem" }) as string,
    },
  };
}

const keys = (): KeyObject => generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;

/** X.509 v3 (RFC 5280), signed with ECDSA and SHA-256. */
function certificate(o: { issuer: Buffer; subject: Buffer; key: KeyObject; by: KeyObject; extension: Buffer }): string {
  const algorithm = seq(oid("2a8648ce3d040302"));
  const spki = createPublicKey(o.key).export({ type: "spki", format: "der" });
  const serial = tlv(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)]));
  const validity = seq(time(Date.now() - 3_600_000), time(Date.now() + 3_600_000));
  const body = seq(
    tlv(0xa0, tlv(0x02, Buffer.from([2]))),
    serial,
    algorithm,
    o.issuer,
    validity,
    o.subject,
    spki,
    tlv(0xa3, seq(o.extension)),
  );
  const der = seq(body, algorithm, bits(sign("sha256", body, o.by)));
  return `-----BEGIN CERTIFICATE-----\n${der.toString("base64").replaceAll(/.{64}/g, "$&\n")}\n-----END CERTIFICATE-----\n`;
}

// DER: a tag, the length, the content.
function tlv(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}
const seq = (...parts: Buffer[]): Buffer => tlv(0x30, Buffer.concat(parts));
const oid = (hex: string): Buffer => tlv(0x06, Buffer.from(hex, "hex"));
const bits = (content: Buffer): Buffer => tlv(0x03, Buffer.concat([Buffer.from([0]), content]));
const time = (ms: number): Buffer =>
  tlv(0x18, Buffer.from(`${new Date(ms).toISOString().replaceAll(/[-:T]|\..*/g, "")}Z`));
const name = (text: string): Buffer => seq(tlv(0x31, seq(oid("550403"), tlv(0x0c, Buffer.from(text)))));
const extension = (id: string, content: Buffer): Buffer => seq(oid(id), tlv(0x04, content));
